// Package shown is how figures are shown, wherever they come from: durations as text, tables, and the colours, texts and
// axes of pictures. It knows nothing of what it shows.
package shown
