package check

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	run "google.golang.org/api/run/v2"
)

// everything are variables with which the module makes all that it can.
func everything() map[string]cty.Value {
	return map[string]cty.Value{
		"project_id":      cty.StringVal(exampleProject),
		"region":          cty.StringVal(exampleRegion),
		"image":           cty.StringVal(exampleRegion + "-docker.pkg.dev/" + exampleProject + "/events/eventsv2:" + exampleTag),
		"webhooks":        cty.True,
		"webhook_secrets": cty.SetVal([]cty.Value{cty.StringVal("GITHUB_SECRET")}),
		"otlp_endpoint":   cty.StringVal("http://collector:4318"),
		"gke_namespace":   cty.StringVal("events"),
	}
}

// atFirst are the variables of the first apply, before there is an image.
func atFirst() map[string]cty.Value {
	return map[string]cty.Value{"project_id": cty.StringVal(exampleProject)}
}

// programs returns the programs of the Cloud Run resources.
func (m *module) programs() (programs []Program) {
	for _, made := range m.made {
		where := "deploy/terraform " + made.address
		switch o := made.object.(type) {
		case *run.GoogleCloudRunV2WorkerPool:
			if t := o.Template; t != nil {
				programs = append(programs, m.ofInstance(where, pooled, t.ServiceAccount, t.Containers, t.Volumes)...)
			}
		case *run.GoogleCloudRunV2Service:
			if t := o.Template; t != nil {
				if t.Scaling == nil || t.Scaling.MinInstanceCount < 1 {
					m.r.problem(where, "it works without requests, and may have no instance")
				}
				programs = append(programs, m.ofInstance(where, served, t.ServiceAccount, t.Containers, t.Volumes)...)
			}
		case *run.GoogleCloudRunV2Job:
			if o.Template != nil && o.Template.Template != nil {
				t := o.Template.Template
				programs = append(programs, m.ofInstance(where, job, t.ServiceAccount, t.Containers, t.Volumes)...)
			}
		}
	}
	return programs
}

func (m *module) ofInstance(where string, k kind, account string, containers []*run.GoogleCloudRunV2Container, volumes []*run.GoogleCloudRunV2Volume) (programs []Program) {
	var beside []string
	for _, c := range containers {
		if isProxy(c.Image) {
			beside = c.Args
		}
	}
	for _, c := range containers {
		if isProxy(c.Image) {
			continue
		}
		p := Program{Where: strings.TrimSpace(where + " " + c.Name), Kind: k, Image: c.Image, Command: c.Command, Args: c.Args, Stop: cloudRunStops,
			Beside: beside, Account: accountID(m.r, where, account), Env: map[string]string{}, Secrets: map[string]string{}}
		for _, v := range c.Env {
			p.Env[v.Name] = v.Value
			if v.ValueSource != nil && v.ValueSource.SecretKeyRef != nil {
				p.secret(v.Name, v.ValueSource.SecretKeyRef.Secret)
			}
		}
		for _, port := range c.Ports {
			p.Ports = append(p.Ports, int(port.ContainerPort))
		}
		for kind, probe := range map[string]*run.GoogleCloudRunV2Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe} {
			if probe == nil || probe.HttpGet == nil {
				continue
			}
			port := int(probe.HttpGet.Port)
			if port == 0 && len(p.Ports) == 1 {
				port = p.Ports[0] // as run/v2 says
			}
			p.Probes = append(p.Probes, Probe{kind, probe.HttpGet.Path, port})
		}
		if k == served && (c.Resources == nil || c.Resources.CpuIdle) {
			m.r.problem(where, "it works without requests, and has no processor between them: it needs cpu_idle = false")
		}
		for _, mount := range c.VolumeMounts {
			p.Mounts = append(p.Mounts, mount.MountPath)
			at := slices.IndexFunc(volumes, func(v *run.GoogleCloudRunV2Volume) bool { return v.Name == mount.Name })
			switch {
			case at < 0:
				m.r.problem(where, "there is no volume %s", mount.Name)
			case volumes[at].Secret != nil:
				p.Secrets["volume "+mount.Name] = volumes[at].Secret.Secret
			case volumes[at].CloudSqlInstance != nil:
				p.SQLSocket = mount.MountPath == "/cloudsql"
			}
		}
		programs = append(programs, p)
	}
	return programs
}

// checkMayRead checks that every secret that a program reads is there, and that its account may read it.
func (m *module) checkMayRead(programs []Program) {
	may := map[string]bool{}
	for _, g := range m.grants() {
		if g.role == "roles/secretmanager.secretAccessor" {
			may[g.account+" "+g.on] = true
		}
	}
	for _, p := range programs {
		for what, secret := range p.Secrets {
			if !may[p.Account+" secret "+secret] {
				m.r.problem(p.Where, "%s needs the secret %s, which %s may not read", what, secret, p.Account)
			}
		}
	}
}
