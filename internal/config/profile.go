package config

import (
	"embed"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// profiles are the names of the named sets of defaults. wfq is Default; each of the others is a file over it.
var profiles = []string{ProfileWFQ, ProfileRecommended, ProfileDynamo, ProfileSMG, ProfileMindRouter}

//go:embed profiles
var profileFiles embed.FS

// profileTexts returns the parsed files of the profiles, by name.
var profileTexts = sync.OnceValue(func() map[string]*yaml.Node {
	texts := map[string]*yaml.Node{}
	for _, name := range profiles[1:] {
		text, err := profileFiles.ReadFile(path.Join("profiles", name+".yaml"))
		if err != nil {
			panic("config: " + err.Error())
		}
		texts[name], _ = parseYAML(text)
	}
	return texts
})

// Profiles returns the names of the profiles, wfq first.
func Profiles() []string { return slices.Clone(profiles) }

// ProfileList returns these names in one text.
func ProfileList() string { return strings.Join(Profiles(), ", ") }

// Profile returns a copy of a profile's document. The error for an unknown name lists the known ones.
func Profile(name string) (Document, error) {
	if !slices.Contains(profiles, name) {
		return Document{}, fmt.Errorf("config: profile %q: must be one of %s", name, strings.Join(profiles, ", "))
	}
	d := Default()
	if text := profileTexts()[name]; text != nil {
		dec := newDecoder(text)
		dec.decode("", text, reflect.ValueOf(&d).Elem())
		if len(dec.problems) > 0 {
			panic(fmt.Sprintf("config: profile %s: %v", name, dec.problems))
		}
	}
	d.Profile, d.ReplaceTiers = name, false // the tiers of a profile are there to be changed
	return d, nil
}
