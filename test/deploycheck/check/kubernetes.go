package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// cluster is what one kustomization makes.
type cluster struct {
	where       string
	namespaces  []*core.Namespace
	accounts    []*core.ServiceAccount
	maps        []*core.ConfigMap
	deployments []*apps.Deployment
	jobs        []*batch.Job
	budgets     []*policy.PodDisruptionBudget
	policies    []*networking.NetworkPolicy
	services    []*core.Service
	ingresses   []*networking.Ingress
	scalers     []*autoscaling.HorizontalPodAutoscaler
	scaled      []*scaledObject
}

// kubernetes builds every kustomization of deploy/gke and returns the programs in them.
func kubernetes(r *Report, t tree) (programs []Program) {
	used := map[string]bool{}
	for _, name := range t.files(r, "deploy/gke", "kustomization.yaml") {
		r.count("kustomizations")
		dir := filepath.Dir(name)
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), t.path(dir))
		if err != nil {
			r.problem(name, "kustomize does not build it: %v", strings.ReplaceAll(err.Error(), string(t)+"/", ""))
			continue
		}
		noteUsed(used, t, name)
		c := &cluster{where: dir}
		for _, resource := range built.Resources() {
			text, err := resource.AsYAML()
			if err != nil {
				r.problem(name, "%v", err)
				continue
			}
			r.count("objects")
			c.decode(r, resource.GetApiVersion()+" "+resource.GetKind(), resource.GetName(), filledIn(r, name, string(text)))
		}
		c.check(r)
		programs = append(programs, c.programs(r)...)
	}
	for _, name := range t.files(r, "deploy/gke", ".yaml") {
		r.count("files")
		if !used[name] {
			r.problem(name, "no kustomization uses it")
		}
	}
	return programs
}

// noteUsed notes the files that a kustomization names.
func noteUsed(used map[string]bool, t tree, name string) {
	used[name] = true
	text, err := os.ReadFile(t.path(name))
	if err != nil {
		return // it was built
	}
	var k struct {
		Resources          []string
		ConfigMapGenerator []struct{ Files []string }
	}
	if yaml.Unmarshal(text, &k) != nil {
		return
	}
	for _, generator := range k.ConfigMapGenerator {
		k.Resources = append(k.Resources, generator.Files...)
	}
	for _, file := range k.Resources {
		used[filepath.Join(filepath.Dir(name), file)] = true
	}
}

// decode reads one object strictly.
func (c *cluster) decode(r *Report, kind, name, text string) {
	where := c.where + " " + kind + " " + name
	switch kind {
	case "v1 Namespace":
		decodeInto(r, where, text, &c.namespaces)
	case "v1 ServiceAccount":
		decodeInto(r, where, text, &c.accounts)
	case "v1 ConfigMap":
		decodeInto(r, where, text, &c.maps)
	case "v1 Service":
		decodeInto(r, where, text, &c.services)
	case "apps/v1 Deployment":
		decodeInto(r, where, text, &c.deployments)
	case "batch/v1 Job":
		decodeInto(r, where, text, &c.jobs)
	case "policy/v1 PodDisruptionBudget":
		decodeInto(r, where, text, &c.budgets)
	case "networking.k8s.io/v1 NetworkPolicy":
		decodeInto(r, where, text, &c.policies)
	case "networking.k8s.io/v1 Ingress":
		decodeInto(r, where, text, &c.ingresses)
	case "autoscaling/v2 HorizontalPodAutoscaler":
		decodeInto(r, where, text, &c.scalers)
	case "keda.sh/v1alpha1 ScaledObject":
		decodeInto(r, where, text, &c.scaled)
	default:
		r.problem(where, "the checker does not know this kind")
	}
}

func decodeInto[T any](r *Report, where, text string, list *[]*T) {
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		r.problem(where, "%v", err)
		return
	}
	*list = append(*list, object)
}

// check checks that what the objects say of each other is so.
func (c *cluster) check(r *Report) {
	pods := map[string]map[string]string{} // labels, by the name of the deployment
	for _, d := range c.deployments {
		pods[d.Name] = d.Spec.Template.Labels
		c.selects(r, "Deployment "+d.Name, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	}
	for _, b := range c.budgets {
		c.selects(r, "PodDisruptionBudget "+b.Name, b.Spec.Selector.MatchLabels, pods[b.Name])
	}
	for _, d := range c.deployments {
		if !slices.ContainsFunc(c.budgets, func(b *policy.PodDisruptionBudget) bool { return b.Name == d.Name }) {
			r.problem(c.where, "Deployment %s has no PodDisruptionBudget", d.Name)
		}
	}
	for _, s := range c.services {
		for _, d := range c.deployments {
			if matches(s.Spec.Selector, d.Spec.Template.Labels) {
				c.checkTarget(r, s, d)
			}
		}
		if !slices.ContainsFunc(c.deployments, func(d *apps.Deployment) bool { return matches(s.Spec.Selector, d.Spec.Template.Labels) }) {
			r.problem(c.where, "Service %s selects no pod", s.Name)
		}
	}
	for _, i := range c.ingresses {
		c.checkIngress(r, i)
	}
	for _, h := range c.scalers {
		c.checkScaler(r, h)
	}
	for _, s := range c.scaled {
		c.checkScaledObject(r, s)
	}
	if len(c.deployments) > 0 && !slices.ContainsFunc(c.policies, func(p *networking.NetworkPolicy) bool {
		return len(p.Spec.PodSelector.MatchLabels) == 0 && len(p.Spec.PolicyTypes) == 2
	}) {
		r.problem(c.where, "no NetworkPolicy holds for all pods, in both directions")
	}
	for _, n := range c.namespaces {
		if n.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
			r.problem(c.where, "Namespace %s does not enforce the restricted standard", n.Name)
		}
	}
}

func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

func (c *cluster) selects(r *Report, what string, selector, labels map[string]string) {
	if !matches(selector, labels) {
		r.problem(c.where, "%s selects %v, and the pods have %v", what, selector, labels)
	}
}

func (c *cluster) checkTarget(r *Report, s *core.Service, d *apps.Deployment) {
	for _, port := range s.Spec.Ports {
		if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(p core.ContainerPort) bool { return p.Name == port.TargetPort.StrVal }) {
			r.problem(c.where, "Service %s leads to port %s, which %s does not have", s.Name, port.TargetPort.String(), d.Name)
		}
	}
}

// checkIngress: the port of a worker also has its health and its metrics, which are nobody's business.
func (c *cluster) checkIngress(r *Report, i *networking.Ingress) {
	for _, rule := range i.Spec.Rules {
		for _, path := range rule.HTTP.Paths {
			if !strings.HasPrefix(path.Path, "/webhooks/") {
				r.problem(c.where, "Ingress %s lets %s through", i.Name, path.Path)
			}
			if !slices.ContainsFunc(c.services, func(s *core.Service) bool { return s.Name == path.Backend.Service.Name }) {
				r.problem(c.where, "Ingress %s leads to the Service %s, which does not exist", i.Name, path.Backend.Service.Name)
			}
		}
	}
	if i.Spec.DefaultBackend != nil {
		r.problem(c.where, "Ingress %s lets every path through", i.Name)
	}
}

func (c *cluster) checkScaler(r *Report, h *autoscaling.HorizontalPodAutoscaler) {
	at := slices.IndexFunc(c.deployments, func(d *apps.Deployment) bool { return d.Name == h.Spec.ScaleTargetRef.Name })
	if at < 0 {
		r.problem(c.where, "HorizontalPodAutoscaler %s scales %s, which does not exist", h.Name, h.Spec.ScaleTargetRef.Name)
		return
	}
	d := c.deployments[at]
	if d.Spec.Replicas != nil {
		r.problem(c.where, "Deployment %s has replicas, and every apply would undo what the autoscaler does", d.Name)
	}
	for _, metric := range h.Spec.Metrics {
		if metric.ContainerResource == nil {
			r.problem(c.where, "HorizontalPodAutoscaler %s has a metric that is not of a container", h.Name)
			continue
		}
		of := slices.IndexFunc(d.Spec.Template.Spec.Containers, func(x core.Container) bool { return x.Name == metric.ContainerResource.Container })
		if of < 0 {
			r.problem(c.where, "HorizontalPodAutoscaler %s measures the container %s, which %s does not have", h.Name, metric.ContainerResource.Container, d.Name)
		} else if _, requested := d.Spec.Template.Spec.Containers[of].Resources.Requests[metric.ContainerResource.Name]; !requested {
			r.problem(c.where, "%s requests no %s, of which the autoscaler would take a share", d.Name, metric.ContainerResource.Name)
		}
	}
}

// programs returns the programs of the pods.
func (c *cluster) programs(r *Report) (programs []Program) {
	for _, d := range c.deployments {
		programs = append(programs, c.ofPod(r, pod, d.Name, &d.Spec.Template.Spec)...)
	}
	for _, j := range c.jobs {
		programs = append(programs, c.ofPod(r, job, j.Name, &j.Spec.Template.Spec)...)
	}
	return programs
}

func (c *cluster) ofPod(r *Report, k kind, name string, spec *core.PodSpec) (programs []Program) {
	where := c.where + " " + name
	if s := spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
		r.problem(where, "its pod does not run as somebody else than root, with a seccomp profile")
	}
	var beside []string
	for _, sidecar := range spec.InitContainers {
		c.confined(r, where, &sidecar)
		if sidecar.RestartPolicy == nil || *sidecar.RestartPolicy != core.ContainerRestartPolicyAlways {
			r.problem(where, "%s is no sidecar: nothing starts before it has ended", sidecar.Name)
		}
		if isProxy(sidecar.Image) {
			beside = sidecar.Args
		}
	}
	account := c.account(r, where, spec.ServiceAccountName)
	for _, container := range spec.Containers {
		c.confined(r, where, &container)
		p := Program{Where: where + " " + container.Name, Kind: k, Image: container.Image, Command: container.Command, Args: container.Args,
			Account: account, Beside: beside, Env: map[string]string{}, Secrets: map[string]string{}, Stop: 30 * time.Second}
		if spec.TerminationGracePeriodSeconds != nil {
			p.Stop = time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second
		}
		c.environment(r, &p, &container)
		for _, port := range container.Ports {
			p.Ports = append(p.Ports, int(port.ContainerPort))
		}
		for kind, probe := range map[string]*core.Probe{"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe} {
			if probe != nil && probe.HTTPGet != nil {
				p.Probes = append(p.Probes, Probe{kind, probe.HTTPGet.Path, number(probe.HTTPGet.Port, container.Ports)})
			}
		}
		for _, mount := range container.VolumeMounts {
			p.Mounts = append(p.Mounts, mount.MountPath)
			c.mounted(r, where, mount, spec.Volumes)
		}
		programs = append(programs, p)
	}
	return programs
}

// number is a port that may be given by its name; 0 if there is none of the name.
func number(port intstr.IntOrString, ports []core.ContainerPort) int {
	if port.Type == intstr.Int {
		return port.IntValue()
	}
	for _, p := range ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort)
		}
	}
	return 0
}

// confined checks that a container may do no more than it needs.
func (c *cluster) confined(r *Report, where string, x *core.Container) {
	s := x.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
		r.problem(where, "%s may write to its file system, or gain rights", x.Name)
	}
	if x.Resources.Requests.Cpu().IsZero() || x.Resources.Limits.Memory().IsZero() {
		r.problem(where, "%s has no request for the processor, or no limit of its memory", x.Name)
	}
}

// account is the Google service account that a Kubernetes account acts as.
func (c *cluster) account(r *Report, where, name string) string {
	for _, a := range c.accounts {
		if a.Name == name {
			return accountID(r, where, a.Annotations["iam.gke.io/gcp-service-account"])
		}
	}
	r.problem(where, "there is no ServiceAccount %q", name)
	return ""
}

// webhookSecrets is the Kubernetes secret whose keys are variables, which the sources of webhooks name.
const webhookSecrets = "events-webhooks"

func (c *cluster) environment(r *Report, p *Program, x *core.Container) {
	for _, from := range x.EnvFrom {
		switch {
		case from.SecretRef != nil && from.SecretRef.Name == webhookSecrets:
			p.Secrets["all of "+webhookSecrets] = webhookSecrets
		case from.ConfigMapRef != nil:
			at := slices.IndexFunc(c.maps, func(m *core.ConfigMap) bool { return m.Name == from.ConfigMapRef.Name })
			if at < 0 {
				r.problem(p.Where, "there is no ConfigMap %s", from.ConfigMapRef.Name)
				continue
			}
			maps.Copy(p.Env, c.maps[at].Data)
		default:
			r.problem(p.Where, "the checker does not know where its environment comes from")
		}
	}
	for _, v := range x.Env {
		p.Env[v.Name] = v.Value
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			p.secret(v.Name, fmt.Sprintf("%s %s", v.ValueFrom.SecretKeyRef.Name, v.ValueFrom.SecretKeyRef.Key))
		}
	}
}

func (c *cluster) mounted(r *Report, where string, mount core.VolumeMount, volumes []core.Volume) {
	for _, v := range volumes {
		if v.Name == mount.Name && v.ConfigMap != nil {
			if !slices.ContainsFunc(c.maps, func(m *core.ConfigMap) bool { return m.Name == v.ConfigMap.Name && len(m.Data) > 0 }) {
				r.problem(where, "there is no ConfigMap %s", v.ConfigMap.Name)
			}
			return
		}
	}
	r.problem(where, "there is no ConfigMap in the volume %s", mount.Name)
}
