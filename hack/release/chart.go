package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// chartDir is the chart's directory in the checkout.
const chartDir = "charts/weir"

// chart writes the chart as Helm packages it, apart from its times: the files that the commit has, in their order.
func (r release) chart() error {
	list, err := git(r.source, "ls-files", chartDir)
	if err != nil {
		return err
	}
	var entries []entry
	for name := range strings.SplitSeq(list, "\n") {
		file := filepath.Join(r.source, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name = path.Join("weir", strings.TrimPrefix(name, chartDir+"/"))
		if name == "weir/Chart.yaml" {
			if text, err = named(text, r.version); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		entries = append(entries, entry{name: name, mode: 0o644, text: text})
	}
	text, err := pack(entries, r.commit.time)
	if err != nil {
		return err
	}
	return r.file("weir-"+r.version+".tgz", text)
}

// named returns a Chart.yaml with the version as the chart's and as the application's, which is the image's tag.
func named(text []byte, version string) ([]byte, error) {
	for key, value := range map[string]string{"version": version, "appVersion": fmt.Sprintf("%q", version)} {
		line := regexp.MustCompile("(?m)^" + key + ": .*$")
		if n := len(line.FindAll(text, -1)); n != 1 {
			return nil, fmt.Errorf("%d lines with the key %s, want one", n, key)
		}
		text = line.ReplaceAllLiteral(text, []byte(key+": "+value))
	}
	return text, nil
}
