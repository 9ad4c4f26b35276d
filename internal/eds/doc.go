// Package eds has the file from which Envoy reads the endpoints of a cluster (EDS by path_config_source, as in
// config/envoy): its text ([Encode]), its replacement in one step ([Write]), and the endpoints that it keeps for a
// while after Weir has lost them ([Kept]).
//
// Weir and Envoy read the same list, each at its own moment. Two facts make the moments harmless (TestEndpointsFile in
// test/envoyfacts):
//
//   - A destination that Envoy lacks goes to the next one of Weir's list, or by the fallback policy.
//   - A draining endpoint gets the requests that name it, and none by the fallback policy unless all drain. So an
//     endpoint that has been removed drains until the last request that Weir had granted for it is there.
package eds
