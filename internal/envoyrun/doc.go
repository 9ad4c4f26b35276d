// Package envoyrun runs a real Envoy for tests, benchmarks and `weir demo`.
//
// Start takes one of the configurations that Weir ships (config/envoy), puts the caller's addresses in it, starts Envoy
// with it and returns when Envoy takes requests. The tests therefore run the files of users: these are decoded and
// changed in their structure (listener, admin and endpoint addresses), nothing is written anew.
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
// Envoy itself chooses its ports: it is told to bind port 0, and asked for the outcome (--admin-address-path, then the
// admin page /listeners). Only the port of the admin interface, to which the listener with the counters leads, is
// reserved beforehand (reserve). So no port is looked for, let go and lost to somebody else. Any number of Envoys can
// run at once: hot restart, whose shared memory and base IDs would collide, is off.
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
