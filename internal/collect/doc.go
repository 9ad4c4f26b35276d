// Package collect puts the state of epps, and of the Envoy before them, into one tar for somebody else to read: status,
// configuration, metrics, recording and Envoy's own configuration.
//
// The tar has no secrets. A flow's key may be one (an API key), so the names of flows and tenants are replaced by the hashes
// that epp shows with --hash-flow-keys; a recording, which has the names in itself, is left out unless epp hashes them. Of the
// configuration the seed of the prompts' hashes goes, and comments, which quote values. Of Envoy's dump every value goes whose
// field's or header's name says that it is one, and every inline file. Of all files, whatever looks like a credential goes.
//
// Each source is read once, with a bound on its time and its size. One that cannot be read is named in manifest.json, with the
// reason.
package collect
