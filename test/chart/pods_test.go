package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// epp is the container of Weir in a Deployment.
func (os objects) epp(t *testing.T) object {
	t.Helper()
	for _, o := range os {
		if o.kind() != "Deployment" {
			continue
		}
		for _, c := range o.at("spec", "template", "spec", "containers").([]any) {
			if container := object(c.(map[string]any)); container.text("name") == "epp" {
				return container
			}
		}
	}
	t.Fatal("no Deployment has a container epp")
	return nil
}

// deployment returns the Deployment of Weir.
func (os objects) deployment(t *testing.T) object {
	t.Helper()
	for key, o := range os {
		if o.kind() == "Deployment" && !strings.HasSuffix(key, "-envoy") {
			return o
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}

// argument returns the value of a flag in a container's arguments, "true" for one without a value, and "" if it is
// missing.
func argument(container object, flag string) string {
	for _, a := range container.texts("args") {
		name, v, valued := strings.Cut(a, "=")
		switch {
		case name != flag:
		case valued:
			return v
		default:
			return "true"
		}
	}
	return ""
}

// The kubelet waits longer than Weir's drain, whatever the values. Otherwise answers are cut.
func TestGracePeriodIsAboveTheDrain(t *testing.T) {
	for name, values := range matrix {
		all := render(t, values)
		drain, err := time.ParseDuration(argument(all.epp(t), "--drain-timeout"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		grace := time.Duration(all.deployment(t).at("spec", "template", "spec", "terminationGracePeriodSeconds").(int)) * time.Second
		if grace < drain+5*time.Second {
			t.Errorf("%s: the grace period is %v, the drain %v", name, grace, drain)
		}
	}
}

// A roll-out never blocks: a new pod is there before an old one goes, and every replica, leader or not, passes the
// readiness probe. The objects are only rendered.
func TestRollOutsDoNotDeadlock(t *testing.T) {
	for name, values := range matrix {
		all := render(t, values)
		epp, deployment := all.epp(t), all.deployment(t)
		for probe, want := range map[string]string{"startupProbe": "liveness", "livenessProbe": "liveness", "readinessProbe": "synced"} {
			if got := epp.text(probe, "grpc", "service"); got != want || epp.at(probe, "grpc", "port") != 9003 {
				t.Errorf("%s: the %s asks for %q at %v, want %q at 9003", name, probe, got, epp.at(probe, "grpc", "port"), want)
			}
		}
		rolling := object(deployment.at("spec", "strategy", "rollingUpdate").(map[string]any))
		if rolling.at("maxUnavailable") != 0 || rolling.at("maxSurge") != 1 {
			t.Errorf("%s: the strategy is %v", name, rolling)
		}
	}
}

// The leader's own EndpointSlice leads gateways to it, if there is a leader: the Service has no selector, the slice has
// the Service's name and ports, and no manifest has the field that Weir writes. Without an election there is a selector
// and no slice.
func TestServiceLeadsToTheLeader(t *testing.T) {
	for name, values := range matrix {
		all := render(t, values)
		published := argument(all.epp(t), "--leader-endpoint-slice")
		elected := argument(all.epp(t), "--ha-enable-leader-election") == "true"
		service := all.get(t, "Service/"+all.deployment(t).name())
		if selects := service.at("spec", "selector") != nil; selects == elected || (published != "") != elected {
			t.Errorf("%s: election %t, the Service has a selector: %t, and the leader enters itself in %q", name, elected, selects, published)
		}
		replicas := all.get(t, "Service/"+all.deployment(t).name()+"-replicas")
		if replicas.at("spec", "selector") == nil || replicas.at("spec", "publishNotReadyAddresses") != true {
			t.Errorf("%s: not every replica is looked up: %v", name, replicas.at("spec"))
		}
		if !elected {
			continue
		}
		slice := all.get(t, "EndpointSlice/"+published)
		if slice.text("metadata", "labels", "kubernetes.io/service-name") != service.name() {
			t.Errorf("%s: the slice is of %v", name, slice.at("metadata", "labels"))
		}
		if _, has := slice["endpoints"]; has {
			t.Errorf("%s: an upgrade would replace the endpoints of the slice", name)
		}
		for i, p := range service.at("spec", "ports").([]any) {
			for _, field := range [][2]string{{"name", "name"}, {"targetPort", "port"}, {"appProtocol", "appProtocol"}} {
				if want := p.(map[string]any)[field[0]]; slice.at("ports", i, field[1]) != want {
					t.Errorf("%s: port %d of the slice has %s %v, the Service %v", name, i, field[1], slice.at("ports", i, field[1]), want)
				}
			}
		}
	}
}

// Weir may change no pod, and only the EndpointSlice that leads to the leader.
func TestRoleIsNarrow(t *testing.T) {
	for name, values := range matrix {
		all := render(t, values)
		for _, g := range grants(all) {
			if g.resource == "pods" && g.verb != "list" && g.verb != "watch" {
				t.Errorf("%s: the role gives %s", name, g)
			}
		}
		role := all["Role/"+all.deployment(t).name()]
		rules, _ := role.at("rules").([]any)
		for i := range rules {
			if !slices.Contains(role.texts("rules", i, "resources"), "endpointslices") {
				continue
			}
			names, verbs := role.texts("rules", i, "resourceNames"), role.texts("rules", i, "verbs")
			if !slices.Equal(names, []string{argument(all.epp(t), "--leader-endpoint-slice")}) || !slices.Equal(verbs, []string{"get", "patch"}) {
				t.Errorf("%s: the role gives %v on the EndpointSlices %v", name, verbs, names)
			}
		}
	}
}

// A change of the configuration reaches a running Weir: the file is in a mounted directory, and nothing restarts the
// pods without a value for it.
func TestConfigurationIsFollowed(t *testing.T) {
	all := render(t, minimal)
	for _, m := range all.epp(t).at("volumeMounts").([]any) {
		if mount := object(m.(map[string]any)); mount.at("subPath") != nil {
			t.Errorf("%s is mounted as a single file, which never changes", mount.text("mountPath"))
		}
	}
	changed := render(t, minimal, "config: { profile: wfq }\n")
	if template := fmt.Sprint(all.deployment(t).at("spec", "template")); template != fmt.Sprint(changed.deployment(t).at("spec", "template")) {
		t.Error("another configuration restarts the pods")
	}
	on := "configChecksum: true\n"
	all, changed = render(t, minimal, on), render(t, minimal, on, "config: { profile: wfq }\n")
	if template := fmt.Sprint(all.deployment(t).at("spec", "template")); template == fmt.Sprint(changed.deployment(t).at("spec", "template")) {
		t.Error("with configChecksum another configuration does not restart the pods")
	}
}

// No container runs as root, may become it, or writes to its image.
func TestContainersHaveNoPrivileges(t *testing.T) {
	for name, values := range matrix {
		for key, o := range render(t, values) {
			spec := o.at("spec", "template", "spec")
			if o.kind() == "Pod" {
				spec = o.at("spec")
			}
			pod, is := spec.(map[string]any)
			if !is {
				continue
			}
			if object(pod).at("securityContext", "runAsNonRoot") != true {
				t.Errorf("%s: %s may run as root", name, key)
			}
			for _, c := range containers(object(pod)) {
				context, _ := c.at("securityContext").(map[string]any)
				dropped := c.texts("securityContext", "capabilities", "drop")
				if context["allowPrivilegeEscalation"] != false || context["readOnlyRootFilesystem"] != true || !slices.Equal(dropped, []string{"ALL"}) {
					t.Errorf("%s: %s: container %s has %v", name, key, c.text("name"), context)
				}
				if c.at("resources", "limits", "memory") == nil {
					t.Errorf("%s: %s: container %s has no memory limit", name, key, c.text("name"))
				}
			}
		}
	}
}

// containers returns the containers of a pod, with the sidecars.
func containers(pod object) []object {
	var all []object
	for _, field := range []string{"initContainers", "containers"} {
		list, _ := pod.at(field).([]any)
		for _, c := range list {
			all = append(all, object(c.(map[string]any)))
		}
	}
	return all
}
