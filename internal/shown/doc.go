// Package shown formats figures for people: durations as text, tables, and the colours, texts and axes of pictures. It
// knows nothing of their meaning.
package shown
