// Package scrape reads the metrics pages of model servers: the requests that their engines run and keep waiting, the use
// and the size of their KV caches, and their preemptions.
//
// A [Scraper] reads the page of each endpoint that it follows about once a second, over one kept connection, and hands
// every result to its owner ([Parts.Told]). Engines are recognised by the names of their metrics (series.go): vLLM, SGLang,
// trtllm-serve, Triton with TensorRT-LLM, and llama.cpp. A page is read as it comes, line by line (page.go), and only the
// lines of known metrics are parsed: a page of 40 KB takes about 15 µs.
//
// It also reads the list of models of a server that answers (models.go), when it is new and every 30 s: the longest context
// that the list states, its LoRA adapters, and from SGLang and llama.cpp the number of requests that they run at once
// (stated.go).
//
// # Foreign load
//
// An engine counts all requests inside it, of all senders; Weir counts its own, exactly and at once. The difference is
// foreign load (load.go):
//
//	foreign = max(0, least of the last 3 scrapes of running + waiting − own)
//
// with own the smaller of Weir's counts at the start and at the end of the scrape. The least of three leaves out
// requests whose end the engine has not noticed yet.
//
// # Age
//
// A reading counts for 3 s. Without a newer one its gauges are unknown from then on, and the foreign load falls evenly
// to 0 at 10 s. An unknown load counts as none: an endpoint whose page cannot be read has Weir's own count, as without
// scraping.
//
// # Invariants
//
//   - At most one scrape of an endpoint is under way; the time, the bytes and the number of series of each are bounded, and
//     so is the number of scrapes at once.
//   - A page that cannot be read changes no value; its endpoint has one warning, until a page could be read again.
//   - An unreadable page is asked for less and less often, down to once in 15 s.
//   - While the scraper does not lead, it asks for nothing and knows nothing.
//
// # What it must never know
//
// Queues, flows and stock; bounds, and the choice of an endpoint.
package scrape
