package collect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

// secretName matches the names of fields and headers with secret values. Envoy itself redacts only its Secret resources
// in a dump.
var secretName = regexp.MustCompile(`(?i)secret|passw|private_?key|api[-_]?key|credential|authorization|cookie|token|inline_(string|bytes)|htpasswd|hmac|` +
	`session_ticket|^x-.*-key$`)

// notSecretNames are matching fields that are needed to understand Envoy's setup.
var notSecretNames = regexp.MustCompile(`(?i)^(max_tokens|token_bucket|tokens_per_fill|access_token_.*_ttl|.*_timeout|transport_socket.*|` +
	`tls_certificate_sds_secret_configs|validation_context_sds_secret_config|sds_secret_configs?|dynamic_.*_secrets|static_secrets|secret_name)$`)

// envoyDump redacts a dump of Envoy's configuration.
func envoyDump(page []byte) ([]byte, error) {
	read := json.NewDecoder(bytes.NewReader(page))
	read.UseNumber()
	var v any
	if err := read.Decode(&v); err != nil {
		return nil, fmt.Errorf("collect: a dump that is no JSON: %w", err)
	}
	return indented(redact(v, false))
}

func isSecret(name string) bool {
	return secretName.MatchString(name) && !notSecretNames.MatchString(name)
}

// redact replaces secret strings: in a field with a secret's name, and next to the name of a secret header.
func redact(v any, secret bool) any {
	switch v := v.(type) {
	case string:
		if secret && v != "" {
			return redacted
		}
	case map[string]any:
		named := secret
		for _, field := range []string{"name", "key", "header_name", "header"} {
			if name, is := v[field].(string); is && isSecret(name) {
				named = true
			}
		}
		for field, value := range v {
			if _, is := value.(string); is && (field == "name" || field == "key" || field == "header_name" || field == "header" || field == "@type") && !secret {
				continue // the name itself
			}
			v[field] = redact(value, named || isSecret(field))
		}
	case []any:
		for i := range v {
			v[i] = redact(v[i], secret)
		}
	}
	return v
}
