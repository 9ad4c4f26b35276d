package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// platforms are those of the programs and the images.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}

// programs are the commands of a release.
var programs = []string{"epp", "weir"}

// platform is an operating system and an architecture, by Go's names, which are OCI's too.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("want make or verify")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	switch args[0] {
	case "make":
		version := flags.String("version", "", "version of the release, like 1.2.3 or 1.2.3-rc.1")
		source := flags.String("source", "../..", "root of the checkout")
		dist := flags.String("out", "../../dist", "directory to write, which may have an earlier release")
		if err := parse(flags, args[1:]); err != nil {
			return err
		}
		return write(*version, *source, *dist, out)
	case "verify":
		dist := flags.String("dist", "../../dist", "directory of the release")
		unpack := flags.String("unpack", "", "directory for the files of one image; empty unpacks nothing")
		platform := flags.String("platform", "linux/amd64", "platform of that image")
		if err := parse(flags, args[1:]); err != nil {
			return err
		}
		return verify(*dist, *unpack, *platform, out)
	}
	return fmt.Errorf("%q: want make or verify", args[0])
}

// parse parses flags, and refuses anything beside them.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: unexpected argument %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

// release is a release being written.
type release struct {
	version string
	commit  commit
	source  string // root of the commit's files
	dir     string // its files
}

// write writes a release beside the directory, and puts it in its place when it is whole.
func write(version, source, dist string, out io.Writer) (err error) {
	if err := checkVersion(version); err != nil {
		return err
	}
	r := release{version: version}
	if r.source, err = filepath.Abs(source); err != nil {
		return err
	}
	if dist, err = filepath.Abs(dist); err != nil {
		return err
	}
	if err := checkGo(r.source); err != nil {
		return err
	}
	if err := replaceable(dist); err != nil {
		return err
	}
	if r.commit, err = cleanCommit(r.source); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dist), filepath.Base(dist)+".part")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(part)) }()
	checkout := r.source
	r.source, r.dir = filepath.Join(part, "source"), filepath.Join(part, "dist")
	if err := errors.Join(r.commit.unpack(checkout, r.source), os.Mkdir(r.dir, 0o755)); err != nil {
		return err
	}
	for _, step := range []func() error{r.build, r.archives, r.boms, r.image, r.chart, r.sums} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := os.Rename(r.dir, dist); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: version %s of commit %s\n", dist, version, r.commit.hash)
	return err
}

// replaceable returns an error that names the file if the directory has any that is not listed in its sums.
func replaceable(dist string) error {
	entries, err := os.ReadDir(dist)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dist, sumsFile))
	if err != nil {
		return fmt.Errorf("%s is no release (it has no %s), and is left as it is", dist, sumsFile)
	}
	listed := map[string]bool{sumsFile: true}
	for line := range strings.Lines(string(text)) {
		if _, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  "); ok {
			listed[name] = true
		}
	}
	return filepath.WalkDir(dist, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dist, file)
		if err == nil && !listed[filepath.ToSlash(name)] {
			err = fmt.Errorf("%s has %s, which is not in its %s, and is left as it is", dist, name, sumsFile)
		}
		return err
	})
}
