// Package sink writes decision records to a file or to the log. It owns the buffer between the streams and the disk, and the
// file's size.
//
// # Bounds
//
// [Sink.Put] never waits: a record that finds the buffer full is dropped, and counted. So a slow or dead disk delays no
// request. The buffer has mostRecords records, each of which has at most scheduling.MostViewed endpoints.
//
// A file that has reached its size is renamed to FILE.1, in place of the one before, so both together take at most twice the
// size and one record. A file that cannot be written is opened again after retryAfter; its records are counted as failed until
// then.
package sink
