package config

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/spelling"
)

// mindRouterVariable is the translation of an environment variable of MindRouter's scheduler: it puts the value into
// the document.
type mindRouterVariable struct {
	name string
	key  string // where its problems are, here
	into func(d *Document, value Decimal)
	// points is the field of a score in place of into: a whole number.
	points func(m *MindRouter) *int64
}

// mindRouterVariables are the variables that MindRouter documents.
var mindRouterVariables = []mindRouterVariable{
	{name: "SCHEDULER_FAIRNESS_WINDOW", key: "flows.fairshare.window", into: func(d *Document, value Decimal) {
		d.Flows.FairShare.Window = Duration(time.Duration(value) * time.Microsecond) // a Decimal counts millionths
	}},
	{name: "SCHEDULER_DEPRIORITIZE_THRESHOLD", key: "flows.fairshare.threshold", into: func(d *Document, value Decimal) {
		d.Flows.FairShare.Threshold = value
	}},
	weightOfRole("student"), weightOfRole("staff"), weightOfRole("faculty"), weightOfRole("admin"),
	{name: "SCHEDULER_SCORE_MODEL_LOADED", key: "scheduling.mindrouter.loaded", points: func(m *MindRouter) *int64 { return &m.Loaded }},
	{name: "SCHEDULER_SCORE_LOW_UTILIZATION", key: "scheduling.mindrouter.utilisation", points: func(m *MindRouter) *int64 { return &m.Utilisation }},
	{name: "SCHEDULER_SCORE_SHORT_QUEUE", key: "scheduling.mindrouter.queue", points: func(m *MindRouter) *int64 { return &m.ShortQueue }},
	{name: "SCHEDULER_SCORE_HIGH_THROUGHPUT", key: "scheduling.mindrouter.throughput", points: func(m *MindRouter) *int64 { return &m.Throughput }},
}

// weightOfRole returns the variable with the weight of a role.
func weightOfRole(name string) mindRouterVariable {
	return mindRouterVariable{
		name: "SCHEDULER_WEIGHT_" + strings.ToUpper(name), key: "roles." + name + ".weight",
		into: func(d *Document, value Decimal) {
			role := d.Roles[name]
			role.Weight = value
			d.Roles[name] = role
		},
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ImportMindRouter converts a file of environment variables of MindRouter, NAME=VALUE in each line, to a document over the
// mindrouter-fairshare profile. The notes tell the operator what is ignored, what differs and what to consider. A line that is
// no variable, and an impossible value of one that is converted, is an error with its name and line; the error is Problems
// and lists all of them.
func ImportMindRouter(text []byte) (Imported, error) {
	im := mindRouterImport{lines: map[string]int{}, values: map[string]string{}}
	var err error
	if im.Document, err = Profile(ProfileMindRouter); err != nil {
		return Imported{}, err
	}
	im.read(string(text))
	im.convert()
	if problems := im.problems.locate(im.lines); len(problems) > 0 {
		return Imported{}, problems.err()
	}
	im.considers()
	return im.Imported, nil
}

// mindRouterImport is the state of an import.
type mindRouterImport struct {
	Imported
	names    []string // in the order of the file
	values   map[string]string
	lines    map[string]int
	problems Problems
}

// read reads the variables as a shell or a container's env file has them: with or without export, quotes and comments. Of a name
// that comes twice the last value counts.
func (im *mindRouterImport) read(text string) {
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(strings.TrimPrefix(line, "export "))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || !variableName.MatchString(name) {
			im.problems = append(im.problems, Problem{Message: "must be NAME=VALUE", Line: i + 1})
			continue
		}
		if im.lines[name] == 0 {
			im.names = append(im.names, name)
		}
		im.values[name], im.lines[name] = unquoted(strings.TrimSpace(value)), i+1
	}
}

// unquoted returns a value without its quotes or the comment behind it.
func unquoted(value string) string {
	if value != "" && strings.ContainsRune(`"'`, rune(value[0])) {
		if end := strings.IndexByte(value[1:], value[0]); end >= 0 {
			return value[1 : 1+end]
		}
	}
	if at := strings.Index(value, " #"); at >= 0 {
		value = value[:at]
	}
	return strings.TrimSpace(value)
}

// convert converts the variables, and notes any that are not the scheduler's.
func (im *mindRouterImport) convert() {
	var known []string
	for _, v := range mindRouterVariables {
		known = append(known, v.name)
	}
	var others []string
	for _, name := range im.names {
		i := slices.Index(known, name)
		switch {
		case i >= 0:
			im.set(&mindRouterVariables[i])
		case strings.HasPrefix(name, "SCHEDULER_"):
			im.note("%s: ignored: no variable of MindRouter's scheduler has this name%s", name, spelling.Suggest(name, known))
		default:
			others = append(others, name) // without their values, which may be secrets
		}
	}
	if len(others) > 0 {
		im.note("ignored, since they do not configure the scheduler: %s", strings.Join(others, ", "))
	}
}

// set converts one variable. A value that its key refuses is a problem of the variable.
func (im *mindRouterImport) set(v *mindRouterVariable) {
	value, err := ParseDecimal(im.values[v.name])
	if err != nil {
		im.problems.add(v.name, im.values[v.name], "must be a number")
		return
	}
	switch {
	case v.points == nil:
		v.into(&im.Document, value)
	case value%One != 0:
		im.problems.add(v.name, im.values[v.name], "must be a whole number")
		return
	default:
		*v.points(&im.Document.Scheduling.MindRouter) = int64(value / One)
	}
	var problems Problems
	errors.As(im.Document.Validate(), &problems)
	for _, p := range problems {
		if p.Path == v.key {
			im.problems.add(v.name, im.values[v.name], "%s", p.Message)
		}
	}
}

// considers notes hints for the operator.
func (im *mindRouterImport) considers() {
	profile, err := Profile(ProfileMindRouter)
	if err == nil && reflect.DeepEqual(profile, im.Document) {
		im.note("no variable changes a default of profile %s", ProfileMindRouter)
	}
	im.note("flows.role takes the user's role from %s, which the issuer of the tokens must set; without a role the weight is 1",
		strings.Join(im.Document.Flows.Role, ", "))
	im.note("flows.key takes the user from the request header %s, which the gateway must set or strip",
		strings.TrimPrefix(im.Document.Flows.Key[0], SourceHeader))
}
