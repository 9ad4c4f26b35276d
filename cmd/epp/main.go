// Command epp is Weir's endpoint picker: an Envoy ext_proc server that holds requests in a fair queue until the model
// servers can take them. `epp --help` lists its flags.
package main

import (
	"os"

	"github.com/weir-epp/weir/cmd/epp/app"
)

func main() { os.Exit(app.Main(os.Args[1:], os.Stdout, os.Stderr)) }
