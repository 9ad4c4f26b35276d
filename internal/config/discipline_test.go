package config

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Each word of flows.discipline that is supported is the queue's discipline of that name.
func TestDisciplines(t *testing.T) {
	for word, want := range map[string]fairqueue.Discipline{
		DisciplineWFQ: fairqueue.WFQ, DisciplineVTC: fairqueue.VTC, DisciplineNone: fairqueue.OneFlow,
	} {
		d, err := Decode([]byte("flows: { discipline: " + word + " }\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", word, err)
		}
		if got := d.FlowcontrolConfig().Queue.Discipline; got != want {
			t.Errorf("%s is discipline %d, want %d", word, got, want)
		}
	}
}
