package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// boms writes the parts of each program.
func (r release) boms() error {
	for _, p := range platforms {
		for _, program := range programs {
			text, err := r.bom(p, program)
			if err != nil {
				return fmt.Errorf("the parts of %s for %s: %w", program, p, err)
			}
			if err := r.file(fmt.Sprintf("%s-%s-%s.cdx.json", program, r.version, p), text); err != nil {
				return err
			}
		}
	}
	return nil
}

// bom returns the modules that a program has, by its build information. That has no edges, so there are none.
func (r release) bom(p platform, program string) ([]byte, error) {
	file := r.program(p, program)
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	main := module(cdx.ComponentTypeApplication, info.Main.Path, r.version, "")
	main.BOMRef, main.Name = main.BOMRef+"#cmd/"+program, program
	main.PackageURL += "?goarch=" + p.arch + "&goos=" + p.os + "#cmd/" + program
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	components := []cdx.Component{module(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, linked(m))
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = serial(sum)
	bom.Metadata = &cdx.Metadata{Timestamp: r.commit.time.Format("2006-01-02T15:04:05Z"), Component: &main}
	bom.Components = &components
	var b bytes.Buffer
	err = cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
	return b.Bytes(), err
}

// serial returns a UUID of version 8 made of a program's sum.
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// linked returns a module of the build information.
func linked(m *debug.Module) cdx.Component {
	return module(cdx.ComponentTypeLibrary, m.Path, m.Version, m.Sum)
}

// module returns a module with its line of go.sum, if it has one.
func module(kind cdx.ComponentType, path, version, sum string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := cdx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: sum}}
	}
	return c
}
