package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// maxVersion is the longest version: a tag of an image has at most 128 characters.
const maxVersion = 128

// checkVersion returns an error that names the version unless it is one by semver.org that can be the tag of an image,
// which has no "+".
func checkVersion(version string) error {
	switch {
	case version == "":
		return errors.New("no version: make release VERSION=1.2.3")
	case strings.HasPrefix(version, "v") && semver.IsValid(version):
		return fmt.Errorf("version %q: leave out the v", version)
	case len(version) > maxVersion:
		return fmt.Errorf("version of %d characters: at most %d", len(version), maxVersion)
	case !semver.IsValid("v"+version) || semver.Canonical("v"+version) != "v"+version:
		return fmt.Errorf("version %q: want MAJOR.MINOR.PATCH, and -PRERELEASE if it is one, as in 1.2.3-rc.1", version)
	}
	return nil
}

// commit is the source of a release.
type commit struct {
	hash string
	time time.Time // of the committer, to the second
}

// cleanCommit returns the commit of a checkout. The error names the first change that the commit does not have.
func cleanCommit(dir string) (commit, error) {
	status, err := git(dir, "status", "--porcelain")
	if err != nil {
		return commit{}, err
	}
	if status != "" {
		first, _, more := strings.Cut(status, "\n")
		others := ""
		if more {
			others = " and others"
		}
		return commit{}, fmt.Errorf("%s has changes that no commit has (%s%s): commit them, or clone", dir, first, others)
	}
	line, err := git(dir, "log", "-1", "--format=%H %ct")
	if err != nil {
		return commit{}, err
	}
	hash, text, _ := strings.Cut(line, " ")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return commit{}, fmt.Errorf("git log of %s: %q has no time: %w", dir, line, err)
	}
	return commit{hash: hash, time: time.Unix(seconds, 0).UTC()}, nil
}

// unpack writes the files of a checkout's commit to a new directory. Other files of the checkout, ignored ones
// among them, do not get there.
func (c commit) unpack(checkout, dir string) error {
	text, err := git(checkout, "-c", "core.autocrlf=false", "archive", "--format=zip", c.hash)
	if err != nil {
		return err
	}
	files, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		return fmt.Errorf("git archive of %s: %w", c.hash, err)
	}
	return os.CopyFS(dir, files)
}

// git returns the output of a git command without the line's end.
func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}
