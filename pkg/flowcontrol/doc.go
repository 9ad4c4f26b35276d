// Package flowcontrol is the controller around the fair queue and the stock (under construction).
package flowcontrol
