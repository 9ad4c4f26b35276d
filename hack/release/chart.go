package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
)

// chartDir is the chart's directory in the checkout.
const chartDir = "charts/weir"

// chart writes the chart as Helm packages it, apart from its times: the files that the commit has, in their order.
func (r release) chart() error {
	var entries []entry
	dir := filepath.Join(r.source, chartDir)
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		name = path.Join("weir", filepath.ToSlash(name))
		if name == "weir/Chart.yaml" {
			if text, err = named(text, r.version); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		entries = append(entries, entry{name: name, mode: 0o644, text: text})
		return nil
	})
	if err != nil {
		return err
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
