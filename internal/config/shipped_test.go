package config

import (
	"os"
	"testing"
)

// The configuration for the shipped Envoys is valid, and gives them fallbacks.
func TestShippedFileForEnvoy(t *testing.T) {
	const file = "../../config/weir.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Load(source(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if !d.Responses.Metadata {
		t.Error("their access logs get nothing of the decision")
	}
	if d.Profile != ProfileRecommended || d.Scheduling.Fallbacks != 2 {
		t.Errorf("profile %s with %d fallbacks, want recommended with 2, as many as the Envoys retry", d.Profile, d.Scheduling.Fallbacks)
	}
}
