package check

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ScaledObject has what deploy/ uses of KEDA's keda.sh/v1alpha1 ScaledObject, whose own package would bring
// all of KEDA. It is exported for the scheme, which finds the kind by the name of the type.
type ScaledObject struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount *int32 `json:"minReplicaCount"`
		MaxReplicaCount *int32 `json:"maxReplicaCount"`
		PollingInterval *int32 `json:"pollingInterval"`
		CooldownPeriod  *int32 `json:"cooldownPeriod"`
		Fallback        *struct {
			FailureThreshold int32 `json:"failureThreshold"`
			Replicas         int32 `json:"replicas"`
		} `json:"fallback"`
		Triggers []struct {
			Type     string            `json:"type"`
			Metadata map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// DeepCopyObject is required by the scheme; no object of deploy/ is changed.
func (s *ScaledObject) DeepCopyObject() runtime.Object { return s }

// metricsAPIKeys are the fields of KEDA's scaler metrics-api that are of use here.
var metricsAPIKeys = []string{"url", "valueLocation", "targetValue", "activationTargetValue", "format"}

// checkScaledObject: it scales a Deployment whose number nothing else sets, by what the program that
// answers /runnable says.
func (c *cluster) checkScaledObject(r *Report, s *ScaledObject) {
	what := "ScaledObject " + s.Name
	if _, ok := c.scaled(r, what, s.Spec.ScaleTargetRef.Name); !ok {
		return
	}
	if s.Spec.MaxReplicaCount == nil || s.Spec.MinReplicaCount == nil || s.Spec.Fallback == nil || len(s.Spec.Triggers) != 1 {
		r.problem(c.where, "%s needs both counts of replicas, a fallback and one trigger", what)
		return
	}
	trigger := s.Spec.Triggers[0]
	if trigger.Type != "metrics-api" {
		r.problem(c.where, "%s has the trigger %s, which the checker does not know", what, trigger.Type)
		return
	}
	for key := range trigger.Metadata {
		if !slices.Contains(metricsAPIKeys, key) {
			r.problem(c.where, "%s: metrics-api has no field %s", what, key)
		}
	}
	address, err := url.Parse(trigger.Metadata["url"])
	if err != nil || address.Path != "/runnable" || trigger.Metadata["valueLocation"] != "runnable" || trigger.Metadata["targetValue"] == "" {
		r.problem(c.where, "%s does not read the number at /runnable: %v", what, trigger.Metadata)
		return
	}
	name, _, _ := strings.Cut(address.Hostname(), ".")
	of, ok := named[*core.Service](c, name)
	if !ok || !slices.ContainsFunc(c.serves(of), func(d *apps.Deployment) bool {
		return slices.Equal(d.Spec.Template.Spec.Containers[0].Command, []string{"/cron"})
	}) || !slices.ContainsFunc(of.Spec.Ports, func(p core.ServicePort) bool { return address.Port() == strconv.Itoa(int(p.Port)) }) {
		r.problem(c.where, "%s asks %s, which is no Service of cron", what, address.Host)
	}
}
