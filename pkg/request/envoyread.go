package request

// EnvoyRead is the part of a request that Envoy itself has read. Only Envoy can say it, so it counts like a trusted
// header: after the headers that the configuration names, and before the body, which is not asked for as far as this says
// enough. How many answers the request asks for is not told (n, best_of, several prompts).
type EnvoyRead struct {
	// Model is the model's name, or "".
	Model string
	// Streams is set if the client wants a stream.
	Streams bool
	// Input is the estimated length of the prompt, and Most that of the longest answer that the request allows, in
	// tokens; estimate.Unknown if they are not told.
	Input, Most int64
}
