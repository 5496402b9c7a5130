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
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/pod-security-admission/api"
	policies "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// cluster has the objects that one kustomization makes.
type cluster struct {
	where   string
	objects []runtime.Object
}

// scheme has the kinds that deploy/ may use.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, apps.AddToScheme, batch.AddToScheme, policy.AddToScheme, networking.AddToScheme, autoscaling.AddToScheme} {
		utilruntime.Must(add(s))
	}
	s.AddKnownTypes(schema.GroupVersion{Group: "keda.sh", Version: "v1alpha1"}, &ScaledObject{})
	return s
}()

// all returns the objects of one type.
func all[T runtime.Object](c *cluster) (found []T) {
	for _, o := range c.objects {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// named returns the object of a type that has the name.
func named[T interface {
	runtime.Object
	meta.Object
}](c *cluster, name string) (T, bool) {
	for _, o := range all[T](c) {
		if o.GetName() == name {
			return o, true
		}
	}
	var none T
	return none, false
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
		decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
		for _, resource := range built.Resources() {
			r.count("objects")
			object, err := runtime.Decode(decoder, []byte(filledIn(r, name, resource.MustYaml())))
			if err != nil {
				r.problem(dir+" "+resource.GetKind()+" "+resource.GetName(), "%v", err)
				continue
			}
			c.objects = append(c.objects, object)
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

// check checks that what the objects say of each other is so.
func (c *cluster) check(r *Report) {
	for _, d := range all[*apps.Deployment](c) {
		c.selects(r, "Deployment "+d.Name, d.Spec.Selector, d.Spec.Template.Labels)
		if b, ok := named[*policy.PodDisruptionBudget](c, d.Name); !ok {
			r.problem(c.where, "Deployment %s has no PodDisruptionBudget", d.Name)
		} else {
			c.selects(r, "PodDisruptionBudget "+b.Name, b.Spec.Selector, d.Spec.Template.Labels)
		}
		if !slices.ContainsFunc(all[*networking.NetworkPolicy](c), func(p *networking.NetworkPolicy) bool {
			return len(p.Spec.PodSelector.MatchLabels) == 0 && len(p.Spec.PolicyTypes) == 2
		}) {
			r.problem(c.where, "no NetworkPolicy holds for all pods, in both directions")
		}
	}
	for _, s := range all[*core.Service](c) {
		c.checkService(r, s)
	}
	for _, i := range all[*networking.Ingress](c) {
		c.checkIngress(r, i)
	}
	for _, h := range all[*autoscaling.HorizontalPodAutoscaler](c) {
		c.checkScaler(r, h)
	}
	for _, s := range all[*ScaledObject](c) {
		c.checkScaledObject(r, s)
	}
	for _, n := range all[*core.Namespace](c) {
		if n.Labels[api.EnforceLevelLabel] != string(api.LevelRestricted) {
			r.problem(c.where, "Namespace %s does not enforce the restricted standard", n.Name)
		}
	}
}

func (c *cluster) selects(r *Report, what string, selector *meta.LabelSelector, pods map[string]string) {
	if s, err := meta.LabelSelectorAsSelector(selector); err != nil || s.Empty() || !s.Matches(labels.Set(pods)) {
		r.problem(c.where, "%s selects %v, and the pods have %v", what, selector, pods)
	}
}

// serves returns the deployments whose pods a service selects.
func (c *cluster) serves(s *core.Service) (found []*apps.Deployment) {
	for _, d := range all[*apps.Deployment](c) {
		if len(s.Spec.Selector) > 0 && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
			found = append(found, d)
		}
	}
	return found
}

func (c *cluster) checkService(r *Report, s *core.Service) {
	deployments := c.serves(s)
	if len(deployments) == 0 {
		r.problem(c.where, "Service %s selects no pod", s.Name)
	}
	for _, d := range deployments {
		for _, port := range s.Spec.Ports {
			if number(port.TargetPort, d.Spec.Template.Spec.Containers[0].Ports) == 0 {
				r.problem(c.where, "Service %s leads to port %s, which %s does not have", s.Name, port.TargetPort.String(), d.Name)
			}
		}
	}
}

// checkIngress: the port of a worker also has its health and its metrics, which must stay private.
func (c *cluster) checkIngress(r *Report, i *networking.Ingress) {
	for _, rule := range i.Spec.Rules {
		for _, path := range rule.HTTP.Paths {
			if !strings.HasPrefix(path.Path, "/webhooks/") {
				r.problem(c.where, "Ingress %s lets %s through", i.Name, path.Path)
			}
			if _, ok := named[*core.Service](c, path.Backend.Service.Name); !ok {
				r.problem(c.where, "Ingress %s leads to the Service %s, which does not exist", i.Name, path.Backend.Service.Name)
			}
		}
	}
	if i.Spec.DefaultBackend != nil {
		r.problem(c.where, "Ingress %s lets every path through", i.Name)
	}
}

// scaled returns the deployment that an autoscaler scales; nothing else may set its replicas.
func (c *cluster) scaled(r *Report, what, name string) (*apps.Deployment, bool) {
	d, ok := named[*apps.Deployment](c, name)
	switch {
	case !ok:
		r.problem(c.where, "%s scales %s, which does not exist", what, name)
	case d.Spec.Replicas != nil:
		r.problem(c.where, "Deployment %s has replicas, and every apply would undo what %s does", name, what)
	}
	return d, ok
}

func (c *cluster) checkScaler(r *Report, h *autoscaling.HorizontalPodAutoscaler) {
	d, ok := c.scaled(r, "HorizontalPodAutoscaler "+h.Name, h.Spec.ScaleTargetRef.Name)
	if !ok {
		return
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

// podSecurity judges pods as a cluster does whose namespace enforces the restricted standard.
var (
	podSecurity = func() policies.Evaluator {
		evaluator, err := policies.NewEvaluator(policies.DefaultChecks(), nil)
		utilruntime.Must(err)
		return evaluator
	}()
	restricted = api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
)

// programs returns the programs of the pods.
func (c *cluster) programs(r *Report) (programs []Program) {
	for _, d := range all[*apps.Deployment](c) {
		programs = append(programs, c.ofPod(r, pod, d.Name, &d.Spec.Template)...)
	}
	for _, j := range all[*batch.Job](c) {
		programs = append(programs, c.ofPod(r, job, j.Name, &j.Spec.Template)...)
	}
	return programs
}

func (c *cluster) ofPod(r *Report, k kind, name string, template *core.PodTemplateSpec) (programs []Program) {
	where, spec := c.where+" "+name, &template.Spec
	if result := policies.AggregateCheckResults(podSecurity.EvaluatePod(restricted, &template.ObjectMeta, spec)); !result.Allowed {
		r.problem(where, "the restricted standard refuses its pod: %s", result.ForbiddenDetail())
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

// confined checks what the restricted standard leaves open.
func (c *cluster) confined(r *Report, where string, x *core.Container) {
	if s := x.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		r.problem(where, "%s may write to its file system", x.Name)
	}
	if x.Resources.Requests.Cpu().IsZero() || x.Resources.Limits.Memory().IsZero() {
		r.problem(where, "%s has no request for the processor, or no limit of its memory", x.Name)
	}
}

// account is the Google service account that a Kubernetes account acts as.
func (c *cluster) account(r *Report, where, name string) string {
	if a, ok := named[*core.ServiceAccount](c, name); ok {
		return accountID(r, where, a.Annotations["iam.gke.io/gcp-service-account"])
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
			m, ok := named[*core.ConfigMap](c, from.ConfigMapRef.Name)
			if !ok {
				r.problem(p.Where, "there is no ConfigMap %s", from.ConfigMapRef.Name)
				continue
			}
			maps.Copy(p.Env, m.Data)
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
			if m, ok := named[*core.ConfigMap](c, v.ConfigMap.Name); !ok || len(m.Data) == 0 {
				r.problem(where, "there is no ConfigMap %s", v.ConfigMap.Name)
			}
			return
		}
	}
	r.problem(where, "there is no ConfigMap in the volume %s", mount.Name)
}
