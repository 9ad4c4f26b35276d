package modelsim

import (
	"net/http"
	"strconv"
)

// failureBody returns an error body in the API's shape.
func failureBody(api api, status int, message string) []byte {
	kind := failureKind(status)
	if api == messages {
		body := append([]byte(`{"type":"error","error":{"type":"`), kind...)
		body = append(body, `","message":`...)
		body = append(body, quoted(message)...)
		return append(body, "}}"...)
	}
	body := append([]byte(`{"error":{"message":`), quoted(message)...)
	body = append(body, `,"type":"`...)
	body = append(body, kind...)
	body = append(body, `","param":null`...)
	body = field(body, "code", status)
	return append(body, "}}"...)
}

// failureKind names a status as vLLM does.
func failureKind(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "BadRequestError"
	case http.StatusNotFound:
		return "NotFoundError"
	case http.StatusTooManyRequests:
		return "RateLimitError"
	case http.StatusServiceUnavailable:
		return "ServiceUnavailableError"
	}
	if status >= 500 {
		return "InternalServerError"
	}
	return strconv.Itoa(status)
}
