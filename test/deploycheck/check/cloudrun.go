package check

import (
	"regexp"
	"slices"
	"strings"

	run "google.golang.org/api/run/v1"
	"sigs.k8s.io/yaml"
)

// annotations are those that deploy/ may give objects of Cloud Run, and the objects that run/v1 says they are for.
var annotations = map[string]string{
	"autoscaling.knative.dev/minScale":      "Revision",
	"autoscaling.knative.dev/maxScale":      "Revision",
	"run.googleapis.com/cpu-throttling":     "Revision",
	"run.googleapis.com/ingress":            "Service",
	"run.googleapis.com/cloudsql-instances": "Execution",
}

// cloudRun decodes the files of deploy/cloudrun and returns the programs in them.
func cloudRun(r *Report, t tree) (programs []Program) {
	for _, name := range t.files(r, "deploy/cloudrun", ".yaml") {
		r.count("files")
		text := filledIn(r, name, t.read(r, name))
		var object struct{ Kind, APIVersion string }
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			r.problem(name, "%v", err)
			continue
		}
		decode := func(into any) bool {
			err := yaml.UnmarshalStrict([]byte(text), into)
			if err != nil {
				r.problem(name, "it is no %s of run/v1: %v", object.Kind, err)
			}
			return err == nil
		}
		switch object.APIVersion + " " + object.Kind {
		case "run.googleapis.com/v1 WorkerPool":
			var o run.WorkerPool
			if decode(&o) && o.Spec != nil && o.Spec.Template != nil {
				checkAnnotations(r, name, "WorkerPool", o.Metadata)
				programs = append(programs, ofRevision(r, name, pooled, o.Spec.Template)...)
			}
		case "serving.knative.dev/v1 Service":
			var o run.Service
			if decode(&o) && o.Spec != nil && o.Spec.Template != nil {
				checkAnnotations(r, name, "Service", o.Metadata)
				checkAlways(r, name, o.Spec.Template.Metadata)
				programs = append(programs, ofRevision(r, name, served, o.Spec.Template)...)
			}
		case "run.googleapis.com/v1 Job":
			var o run.Job
			if decode(&o) && o.Spec != nil && o.Spec.Template != nil && o.Spec.Template.Spec != nil && o.Spec.Template.Spec.Template != nil {
				checkAnnotations(r, name, "Execution", o.Spec.Template.Metadata)
				task := o.Spec.Template.Spec.Template.Spec
				made := ofContainers(r, name, job, task.ServiceAccountName, task.Containers, task.Volumes)
				for i := range made {
					made[i].SQLSocket = annotation(o.Spec.Template.Metadata, "run.googleapis.com/cloudsql-instances") == exampleProject+":"+exampleRegion+":events"
				}
				programs = append(programs, made...)
			}
		default:
			r.problem(name, "there is no %s of %s", object.Kind, object.APIVersion)
		}
	}
	return programs
}

func annotation(metadata *run.ObjectMeta, name string) string {
	if metadata == nil {
		return ""
	}
	return metadata.Annotations[name]
}

func checkAnnotations(r *Report, name, object string, metadata *run.ObjectMeta) {
	if metadata == nil {
		return
	}
	for key := range metadata.Annotations {
		if annotations[key] != object {
			r.problem(name, "the annotation %s is not for a %s", key, object)
		}
	}
}

// checkAlways: the programs work without requests.
func checkAlways(r *Report, name string, metadata *run.ObjectMeta) {
	if annotation(metadata, "run.googleapis.com/cpu-throttling") != "false" || annotation(metadata, "autoscaling.knative.dev/minScale") == "" {
		r.problem(name, "it has no processor between requests: it needs minScale, and cpu-throttling false")
	}
}

func ofRevision(r *Report, name string, k kind, template *run.RevisionTemplate) []Program {
	checkAnnotations(r, name, "Revision", template.Metadata)
	if template.Spec == nil {
		r.problem(name, "it has no containers")
		return nil
	}
	return ofContainers(r, name, k, template.Spec.ServiceAccountName, template.Spec.Containers, template.Spec.Volumes)
}

// ofContainers returns the programs of an instance. Its volumes are secrets.
func ofContainers(r *Report, name string, k kind, account string, containers []*run.Container, volumes []*run.Volume) (programs []Program) {
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
		p := Program{Where: name + " " + c.Name, Kind: k, Image: c.Image, Command: c.Command, Args: c.Args, Stop: cloudRunStops, Beside: beside,
			Account: accountID(r, name, account), Env: map[string]string{}, Secrets: map[string]string{}}
		for _, v := range c.Env {
			p.Env[v.Name] = v.Value
			if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
				p.secret(v.Name, v.ValueFrom.SecretKeyRef.Name)
			}
		}
		for _, port := range c.Ports {
			p.Ports = append(p.Ports, int(port.ContainerPort))
		}
		for kind, probe := range map[string]*run.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
			if probe != nil && probe.HttpGet != nil {
				p.Probes = append(p.Probes, Probe{kind, probe.HttpGet.Path, int(probe.HttpGet.Port)})
			}
		}
		for _, mount := range c.VolumeMounts {
			p.Mounts = append(p.Mounts, mount.MountPath)
			if !slices.ContainsFunc(volumes, func(v *run.Volume) bool { return v.Name == mount.Name && v.Secret != nil }) {
				r.problem(p.Where, "there is no secret in the volume %s", mount.Name)
			}
		}
		for _, v := range volumes {
			if v.Secret != nil {
				p.Secrets["volume "+v.Name] = v.Secret.SecretName
			}
		}
		programs = append(programs, p)
	}
	return programs
}

// secret gives a variable of a program a value in place of that of a secret.
func (p *Program) secret(variable, secret string) {
	value := "a-secret-of-the-checker"
	if variable == "DATABASE_URL" {
		value = "host=127.0.0.1 user=events_owner password=a-secret-of-the-checker dbname=events"
	}
	p.Env[variable], p.Secrets[variable] = value, secret
}

var serviceAccount = regexp.MustCompile(`^([a-z][a-z0-9-]{4,28}[a-z0-9])@` + exampleProject + `\.iam\.gserviceaccount\.com$`)

// accountID is the id of a service account, and reports an address that is none of the project.
func accountID(r *Report, where, address string) string {
	match := serviceAccount.FindStringSubmatch(address)
	if match == nil {
		r.problem(where, "%q is no service account of the project", address)
		return strings.TrimSpace(address)
	}
	return match[1]
}
