// Package envoyrun runs a real Envoy for tests, benchmarks and `weir demo`.
//
// Start takes one of Weir's shipped configurations (config/envoy), puts the caller's addresses in it, starts Envoy and
// returns when Envoy takes requests. So the tests run users' files: only addresses (listener, admin, endpoints) are
// changed in the decoded file.
//
//	envoy, err := envoyrun.Start(ctx, envoyrun.Options{
//		Config:       "recommended",
//		Weir:         weirListener.Addr().String(),
//		ModelServers: []string{"127.0.0.1:8001", "127.0.0.1:8002"},
//	})
//	if err != nil {
//		return err
//	}
//	defer envoy.Stop()
//	resp, err := http.Get(envoy.URL() + "/v1/models")
//
// # Addresses
//
// Envoy binds port 0, and Start asks it for the chosen ports (--admin-address-path, then the admin page /listeners).
// Only the port of the admin interface, the target of the listener with the counters, is reserved beforehand (reserve).
// So no free port is looked up, released and lost to another process. Any number of Envoys can run at once: hot
// restart, with its shared memory and base IDs that would collide, is off.
//
// # Life
//
// An Envoy lives until Stop, Kill, or the end of the context given to Start, whichever comes first; it also dies with
// its parent (package child). After Stop or Kill no process, goroutine or temporary file is left.
//
// # Getting Envoy
//
// Find takes $ENVOY, an envoy on PATH, or the one that `make envoy` (hack/envoy.sh) installed into .cache. Without one
// it fails with an error that says so: a missing Envoy is an error, never a reason to skip.
package envoyrun
