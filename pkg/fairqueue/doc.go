// Package fairqueue is the fair request queue (under construction).
package fairqueue
