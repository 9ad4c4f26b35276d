package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Imported is what a file of another system becomes.
type Imported struct {
	Document Document
	// Values are those of Weir's chart but for config, which is the document, if the file has values of another chart.
	Values map[string]any
	// Engines are the model servers, for epp's --endpoints-file.
	Engines []Engine
	// Notes tell the operator what is ignored, what differs and what to consider.
	Notes []string
}

// Engine is a model server of an imported file.
type Engine struct {
	// Address is ip:port.
	Address string `yaml:"address"`
	// Slots is the number of requests that it runs at once; 0: unknown.
	Slots int64 `yaml:"slots,omitempty"`
	// Models are the models that it serves; empty: any.
	Models []string `yaml:"models,omitempty"`
	// Role is "prefill" or "decode"; empty: both.
	Role string `yaml:"role,omitempty"`
}

// MarshalEngines writes engines as a file for --endpoints-file.
func MarshalEngines(engines []Engine) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(map[string][]Engine{"endpoints": engines}); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (im *Imported) note(format string, args ...any) {
	im.Notes = append(im.Notes, fmt.Sprintf(format, args...))
}

// serve adds an engine at a URL that serves a model, or "" for any, and returns it; nil, with a note, if Envoy could not
// route to it. where is the URL's place in the file. An engine that is listed again serves both models.
func (im *Imported) serve(where, text, model string) *Engine {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		im.note("%s: ignored: an engine's URL is http://IP:PORT", where)
		return nil
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		im.note("%s: %s is a host name, and Envoy routes to addresses: list the engine's IP and port %s in the endpoints file%s",
			where, u.Hostname(), port, servingModel(model))
		return nil
	}
	if u.Scheme == "https" {
		im.note("%s: the engine serves TLS: give Envoy's cluster of model servers a transport_socket", where)
	}
	if path := strings.TrimSuffix(u.Path, "/"); path != "" && path != "/v1" {
		im.note("%s: its path is left out: Envoy passes the clients' paths on as they are", where)
	}
	address := ip.Unmap().String() + ":" + port
	if ip.Is6() && !ip.Is4In6() {
		address = "[" + ip.String() + "]:" + port
	}
	i := slices.IndexFunc(im.Engines, func(e Engine) bool { return e.Address == address })
	if i < 0 {
		im.Engines = append(im.Engines, Engine{Address: address})
		i = len(im.Engines) - 1
	}
	e := &im.Engines[i]
	if model != "" && !slices.Contains(e.Models, model) {
		e.Models = append(e.Models, model)
	}
	return e
}

func servingModel(model string) string {
	if model == "" {
		return ""
	}
	return fmt.Sprintf(", with models: [%s]", model)
}

// target adds a target of a model, and returns it; of a target that is there already the weight is raised.
func (im *Imported) target(model, target string, weight int64) {
	d := &im.Document
	i := slices.IndexFunc(d.Models, func(m Model) bool { return m.Name == model })
	if i < 0 {
		d.Models = append(d.Models, Model{Name: model})
		i = len(d.Models) - 1
	}
	targets := &d.Models[i].Targets
	if j := slices.IndexFunc(*targets, func(t ModelTarget) bool { return t.Name == target }); j >= 0 {
		(*targets)[j].Weight += weight
		return
	}
	*targets = append(*targets, ModelTarget{Name: target, Weight: weight})
}

// Beside makes the values those of a release beside another one, whose InferencePool, HTTPRoute and InferenceObjectives
// stay where they are: Helm refuses to make them a second time, and a second pool or route would divide the traffic.
func (im *Imported) Beside(release string) error {
	if im.Values == nil {
		return errors.New("has no values of a chart")
	}
	pool, _ := im.Values["pool"].(map[string]any)
	if pool == nil {
		pool = map[string]any{}
		im.Values["pool"] = pool
	}
	pool["create"], pool["name"] = false, release
	if gateway, _ := im.Values["gateway"].(map[string]any); gateway["provider"] == "gke" {
		delete(im.Values, "gateway") // its policies are of the pool, which has theirs
		im.Document.AssumeFullDuplex = true
		im.note("gateway.provider: left out: release %s has policies for the pool; assumeFullDuplex is set for GKE", release)
	}
	for _, value := range []string{"httpRoute", "objectives"} {
		if im.Values[value] != nil {
			delete(im.Values, value)
			im.Notes = slices.DeleteFunc(im.Notes, func(n string) bool { return strings.HasPrefix(n, value+".") })
			im.note("%s: left out: release %s has its own", value, release)
		}
	}
	return nil
}

// Marshal writes the configuration as a file, or the values with the configuration in them.
func (im *Imported) Marshal() ([]byte, error) {
	text, err := im.Document.MarshalOverlay()
	if err != nil || im.Values == nil {
		return text, err
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	delete(document, "apiVersion")
	delete(document, "kind")
	values := maps.Clone(im.Values)
	values["config"] = document
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(values); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
