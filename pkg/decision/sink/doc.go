// Package sink writes decision records to a file or to the log. It owns the buffer between the streams and the disk, and the
// file's size.
//
// # Bounds
//
// [Sink.Put] never waits: with a full buffer a record is dropped and counted. So a slow or dead disk delays no request.
// The buffer has mostRecords records with at most scheduling.MostViewed endpoints each.
//
// A file that has reached its size is renamed to FILE.1 and replaces the previous FILE.1, so both together take at most
// twice the size plus one record. A file that cannot be written is opened again after retryAfter; until then records
// are counted as failed.
package sink
