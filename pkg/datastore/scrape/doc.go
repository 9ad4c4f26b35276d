// Package scrape reads the metrics pages of model servers: their engines' running and waiting requests, the use and the
// size of their KV caches, and their preemptions.
//
// A [Scraper] reads the page of each followed endpoint about once a second, over one kept connection, and passes every
// result to its owner ([Parts.Told]). Engines are recognised by the names of their metrics (series.go): vLLM, SGLang,
// trtllm-serve, Triton with TensorRT-LLM, and llama.cpp. A page is read line by line as it arrives (page.go), and only
// the lines of known metrics are parsed: a page of 40 KB takes about 15 µs.
//
// It also reads an answering server's list of models (models.go), at first and every 30 s: the longest stated context,
// the LoRA adapters, and from SGLang and llama.cpp the number of requests that they run at once (stated.go).
//
// # Foreign load
//
// An engine counts all requests inside it, of all senders; Weir counts its own, exactly and at once. The difference is
// foreign load (load.go):
//
//	foreign = max(0, least of the last 3 scrapes of running + waiting − own)
//
// where own is the smaller of Weir's counts at the start and at the end of the scrape. Taking the least of three
// excludes requests whose end the engine has not noticed yet.
//
// # Age
//
// A reading counts for 3 s. Without a newer one its gauges are then unknown, and the foreign load falls evenly to 0 at
// 10 s. An unknown load counts as 0: an endpoint with an unreadable page has Weir's own count, as without scraping.
//
// # Invariants
//
//   - An endpoint has at most one running scrape. The time, the bytes and the number of series of each scrape are
//     bounded, and so is the number of concurrent scrapes.
//   - An unreadable page changes no value; its endpoint gets one warning, until a page is readable again.
//   - An unreadable page is requested less and less often, down to once in 15 s.
//   - While the scraper does not lead, it sends no requests and has no readings.
//
// # What it must never know
//
// Queues, flows and stock; bounds, and the choice of an endpoint.
package scrape
