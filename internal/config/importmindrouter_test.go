package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The values of MindRouter's document are the profile's, and other values become their keys. Every variable is
// mentioned, and no value of a variable outside the scheduler is printed.
func TestImportMindRouterConverts(t *testing.T) {
	profile, err := Profile(ProfileMindRouter)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, v := range mindRouterVariables {
		fmt.Fprintf(&all, "%s=7\n", v.name)
	}
	text := strings.Replace(all.String(), "THRESHOLD=7", "THRESHOLD=0.5", 1)
	text = strings.Replace(text, "WINDOW=7", "WINDOW=300", 1)
	for role, weight := range map[string]string{"STUDENT": "1", "STAFF": "2", "FACULTY": "3", "ADMIN": "10"} {
		text = strings.Replace(text, role+"=7", role+"="+weight, 1)
	}
	for term, points := range map[string]string{"MODEL_LOADED": "100", "LOW_UTILIZATION": "50", "SHORT_QUEUE": "30", "HIGH_THROUGHPUT": "20"} {
		text = strings.Replace(text, term+"=7", term+"="+points, 1)
		im, err := ImportMindRouter([]byte("SCHEDULER_SCORE_" + term + "=7"))
		key := map[string]string{"MODEL_LOADED": "loaded", "LOW_UTILIZATION": "utilisation", "SHORT_QUEUE": "queue", "HIGH_THROUGHPUT": "throughput"}[term]
		if changed := Changed(profile, im.Document); err != nil || !slices.Equal(changed, []string{"scheduling.mindrouter." + key}) {
			t.Errorf("%s: %v, changed: %v", term, err, changed)
		}
	}
	im, err := ImportMindRouter([]byte(text + "PASSWORD=hunter2\n"))
	if err != nil || !reflect.DeepEqual(im.Document, profile) {
		t.Errorf("%v, changed: %v", err, Changed(profile, im.Document))
	}
	for _, v := range mindRouterVariables {
		if strings.Contains(strings.Join(im.Notes, "\n"), v.name) {
			t.Errorf("%s is noted", v.name)
		}
	}
	if said := strings.Join(im.Notes, "\n"); !strings.Contains(said, "PASSWORD") || strings.Contains(said, "hunter2") {
		t.Errorf("notes: %s", said)
	}
	for _, role := range []string{"student", "staff", "faculty", "admin"} {
		im, err := ImportMindRouter([]byte("SCHEDULER_WEIGHT_" + strings.ToUpper(role) + "=2.5"))
		if changed := Changed(profile, im.Document); err != nil || im.Document.Roles[role].Weight != mustDecimal("2.5") || len(changed) != 1 {
			t.Errorf("%s: %v, changed: %v", role, err, changed)
		}
	}
	if again, _ := Profile(ProfileMindRouter); !reflect.DeepEqual(again, profile) {
		t.Error("the import has changed the profile")
	}
	im, err = ImportMindRouter([]byte("SCHEDULER_FAIRNESS_WINDOW=10\nSCHEDULER_FAIRNESS_WINDOW=0090.5 # s\nSCHEDULER_DEPRIORITIZE_THRESHOLD = \"0.75\"\n"))
	share := im.Document.Flows.FairShare
	if err != nil || share.Window != Duration(90500*time.Millisecond) || share.Threshold != mustDecimal("0.75") {
		t.Errorf("%v, %+v", err, share)
	}
}

// Every problem has its variable, its value and its line.
func TestImportMindRouterProblems(t *testing.T) {
	wantProblems(t, ImportMindRouter, map[string][]string{
		"SCHEDULER_DEPRIORITIZE_THRESHOLD=0.4\n":                       {`SCHEDULER_DEPRIORITIZE_THRESHOLD: "0.4": must be from 0.5 to 1 (line 1)`},
		"SCHEDULER_SCORE_SHORT_QUEUE=1.5":                              {`SCHEDULER_SCORE_SHORT_QUEUE: "1.5": must be a whole number (line 1)`},
		"SCHEDULER_SCORE_MODEL_LOADED=10001":                           {`SCHEDULER_SCORE_MODEL_LOADED: "10001": must be from 0 to 10000 (line 1)`},
		"SCHEDULER_WEIGHT_ADMIN=0":                                     {`SCHEDULER_WEIGHT_ADMIN: "0": must be from 0.001 to 1000000 (line 1)`},
		"\n# why\nSCHEDULER_FAIRNESS_WINDOW=0":                         {`SCHEDULER_FAIRNESS_WINDOW: "0": must be from 1s to 24h (line 3)`},
		"SCHEDULER_FAIRNESS_WINDOW=soon":                               {`SCHEDULER_FAIRNESS_WINDOW: "soon": must be a number (line 1)`},
		"SCHEDULER_FAIRNESS_WINDOW=":                                   {`SCHEDULER_FAIRNESS_WINDOW: "": must be a number (line 1)`},
		"SCHEDULER_FAIRNESS_WINDOW=99999999999":                        {`SCHEDULER_FAIRNESS_WINDOW: "99999999999": must be a number (line 1)`},
		"A=1\nnonsense\n=x\nSCHEDULER_DEPRIORITIZE_THRESHOLD: 0.5\n":   {"must be NAME=VALUE (line 2)", "must be NAME=VALUE (line 3)", "must be NAME=VALUE (line 4)"},
		"weights:\n  student: 1\nSCHEDULER_DEPRIORITIZE_THRESHOLD=1.1": {"must be NAME=VALUE (line 1)", "must be NAME=VALUE (line 2)", `SCHEDULER_DEPRIORITIZE_THRESHOLD: "1.1": must be from 0.5 to 1 (line 3)`},
	})
}
