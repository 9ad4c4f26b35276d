// Package arguments explains errors in command-line arguments in the style of configuration errors: the flag, the value
// found and the values allowed.
package arguments
