// Package docs runs the commands of README.md and of the pages in docs, and checks the names that they mention.
//
// Pages keep these rules, so that their commands can be run:
//
//   - An `sh` block is a script: it must end with 0. Where it starts epp or Envoy in the foreground, they run on.
//   - A `console` block has commands after "$ ", and below each one lines of its output, in their order. In such a line …
//     stands for anything, and the width of blanks does not count. Other lines may be in between.
//   - A `log` block has parts of lines that are in epp's log then.
//   - A `yaml` block that begins with "# NAME.yaml" is that file, in the directory where the commands run.
//   - The comment <!-- scene: NAME --> names the scene that runs from there on (scene.go has them); at the top of a
//     page it is a whole scene without a fault. All commands after the same comment share one scene, from top to
//     bottom.
//
// The pages have the default ports, and 10.0.0.1:8000 and 10.0.0.2:8000 for model servers; the test has others, and
// translates both ways. Commands that are not run here are in the list letOut, each with its reason.
package docs
