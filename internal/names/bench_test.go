package names

import (
	"fmt"
	"testing"

	"github.com/weir-epp/weir/internal/kubeapi"
)

// The merge of 1,000 objectives and 1,000 models with two targets each is the cost of one change of a resource.
func BenchmarkMerge(b *testing.B) {
	var r Resources
	for i := range 1000 {
		name := fmt.Sprintf("n%d", i)
		r.Objectives = append(r.Objectives, &kubeapi.InferenceObjective{
			ObjectMeta: at(int64(i%100), name), Spec: kubeapi.InferenceObjectiveSpec{PoolRef: ours()},
		})
		r.Models = append(r.Models, &kubeapi.InferenceModel{ObjectMeta: at(int64(i%100), name), Spec: kubeapi.InferenceModelSpec{
			ModelName: name, PoolRef: ours(), TargetModels: []kubeapi.TargetModel{{Name: "v1"}, {Name: "v2"}},
		}})
	}
	for b.Loop() {
		Merge(File{}, pool, r)
	}
}
