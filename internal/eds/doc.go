// Package eds writes the file from which Envoy reads the endpoints of a cluster (EDS by path_config_source, as in
// config/envoy). It owns the file's text ([Encode]), its atomic replacement ([Write]), and the endpoints that the file
// keeps for a while after they have left Weir's pool ([Kept]).
//
// Weir and Envoy read the same list at different moments. Two facts make the difference harmless (TestEndpointsFile in
// test/envoyfacts):
//
//   - For a destination that Envoy lacks, Envoy takes the next one of Weir's list, or follows the fallback policy.
//   - A draining endpoint gets requests that name it, and none by the fallback policy unless all endpoints drain. So a
//     removed endpoint drains until the last request granted for it has arrived.
package eds
