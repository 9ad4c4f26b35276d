// Package docs runs the commands of README.md and of the pages in docs, and checks the names that they mention.
//
// Pages keep these rules, so that their commands can be run:
//
//   - An `sh` block is a script that must exit with 0. An epp or Envoy that it starts in the foreground keeps running.
//   - A `console` block has commands after "$ ", and below each command lines of its output, in order. In such a line …
//     matches any text, and the width of blanks does not count. The output may have other lines in between.
//   - A `log` block has parts of lines that epp's log must then contain.
//   - A `yaml` block that begins with "# NAME.yaml" is that file, in the directory where the commands run.
//   - The comment <!-- scene: NAME --> starts a scene (scene.go has the names); before the first comment of a page the
//     scene is the whole one without a fault. All commands after the same comment share one scene, from top to bottom.
//
// The pages have the default ports, and 10.0.0.1:8000 and 10.0.0.2:8000 for model servers; the test uses others, and
// translates both ways. The list letOut has the commands that are not run, each with its reason.
package docs
