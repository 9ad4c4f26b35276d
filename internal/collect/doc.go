// Package collect writes the state of epps and of their Envoy into one tar that can be sent to somebody else: status,
// configuration, metrics, recording and Envoy's own configuration.
//
// The tar has no secret that the package recognises. A flow's key may be a secret (an API key), so the hashes of epp's
// --hash-flow-keys replace the names of flows and tenants, also in a recording of the program's own build; one of
// another build is left out. The configuration loses the seed of the prompts' hashes, and its comments, which quote
// values. Envoy's dump loses inline files, and the values of fields and headers with names of secrets. All files lose
// anything that looks like a credential.
//
// Each source is read once, with a bound on its time and its size. manifest.json names each unreadable source, with the
// reason.
package collect
