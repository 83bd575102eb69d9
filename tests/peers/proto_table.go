package main

// proto-table: the facts that storage/codec/k8s_proto needs to turn Kubernetes' protobuf into JSON and back, read by reflection from the compiled types
// of k8s.io/api: field numbers, JSON names, types, and what encoding/json writes when a field is empty. Nothing but these facts is printed.
// storage/codec/k8s_proto_table.def is what it prints; a test compares the two.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// Types whose JSON is not that of their fields.
var protoSpecials = map[reflect.Type]string{
	reflect.TypeOf(metav1.Time{}):          "TIME",
	reflect.TypeOf(metav1.MicroTime{}):     "MICRO_TIME",
	reflect.TypeOf(metav1.FieldsV1{}):      "RAW",
	reflect.TypeOf(runtime.RawExtension{}): "RAW",
	reflect.TypeOf(resource.Quantity{}):    "QUANTITY",
	reflect.TypeOf(intstr.IntOrString{}):   "INT_OR_STRING",
}

type protoKind struct {
	gvk  schema.GroupVersionKind
	kind reflect.Type
}

var stableVersion = regexp.MustCompile(`^v[0-9]+$`)

// protoKinds lists every object and list of a stable version (no alpha, no beta), and the few of meta/v1 that travel on their own.
func protoKinds() []protoKind {
	var kinds []protoKind
	for gvk, kind := range scheme.Scheme.AllKnownTypes() {
		if !stableVersion.MatchString(gvk.Version) || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		_, object := kind.FieldByName("ObjectMeta")
		_, list := kind.FieldByName("ListMeta")
		if (object || list) && kind.PkgPath() != "k8s.io/apimachinery/pkg/apis/meta/v1" {
			kinds = append(kinds, protoKind{gvk, kind})
		}
	}
	core := schema.GroupVersion{Version: "v1"}
	meta := schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}
	kinds = append(kinds,
		protoKind{core.WithKind("DeleteOptions"), reflect.TypeOf(metav1.DeleteOptions{})},
		protoKind{core.WithKind("Status"), reflect.TypeOf(metav1.Status{})},
		protoKind{meta.WithKind("PartialObjectMetadata"), reflect.TypeOf(metav1.PartialObjectMetadata{})},
		protoKind{meta.WithKind("PartialObjectMetadataList"), reflect.TypeOf(metav1.PartialObjectMetadataList{})})
	sort.Slice(kinds, func(i, j int) bool {
		a, b := kinds[i].gvk, kinds[j].gvk
		if a.Kind != b.Kind {
			return a.Kind < b.Kind
		}
		return a.GroupVersion().String() < b.GroupVersion().String()
	})
	for i := 1; i < len(kinds); i++ {
		if kinds[i-1].gvk == kinds[i].gvk {
			protoFail("%v: two types", kinds[i].gvk)
		}
	}
	return kinds
}

type protoField struct {
	number    int
	json      string
	kind      string // of one value
	child     reflect.Type
	container string // ONE, POINTER, LIST, MAP
	omitEmpty bool
	omitZero  bool
	inline    bool
}

type protoMessage struct {
	name    string // its C identifier
	fields  []protoField
	numbers []int // indexes of fields by number
	names   [][2]int
}

type protoTable struct {
	messages map[reflect.Type]*protoMessage
	order    []reflect.Type
}

func protoFail(format string, arguments ...any) {
	panic(fmt.Sprintf("proto-table: "+format, arguments...))
}

// protoName is k8s.io/api/apps/v1.Deployment -> apps_v1_Deployment.
func protoName(kind reflect.Type) string {
	parts := strings.Split(kind.PkgPath(), "/")
	for i, part := range parts {
		if part == "api" && parts[0] == "k8s.io" && i == 1 || part == "pkg" {
			parts = parts[i+1:]
			break
		}
	}
	name := strings.Join(append(parts, kind.Name()), "_")
	return strings.NewReplacer(".", "_", "-", "_", "apis_meta", "meta").Replace(name)
}

// protoWrapper tells whether a slice type is a message of its own that holds one repeated field, while in JSON it is a plain array.
func protoWrapper(kind reflect.Type) bool {
	_, wrapper := reflect.New(kind).Interface().(interface{ Marshal() ([]byte, error) })
	return wrapper && kind.Kind() == reflect.Slice
}

// protoValueKind names the type of one value.
func protoValueKind(kind reflect.Type, tag string) (string, reflect.Type) {
	if special, ok := protoSpecials[kind]; ok {
		return special, nil
	}
	if _, ok := reflect.New(kind).Interface().(json.Marshaler); ok {
		protoFail("%v has a JSON form of its own", kind)
	}
	switch kind.Kind() {
	case reflect.Bool:
		return "BOOL", nil
	case reflect.Int32:
		return "INT32", nil
	case reflect.Int64, reflect.Int:
		return "INT64", nil
	case reflect.String:
		return "STRING", nil
	case reflect.Struct:
		return "MESSAGE", kind
	case reflect.Slice:
		if kind.Elem().Kind() == reflect.Uint8 {
			return "BYTES", nil
		}
		if protoWrapper(kind) && kind.Elem().Kind() == reflect.String {
			return "STRINGS", nil
		}
	}
	protoFail("no idea what to do with %v (%s)", kind, tag)
	return "", nil
}

func (t *protoTable) field(owner reflect.Type, field reflect.StructField) (protoField, bool) {
	var result protoField
	tag := field.Tag.Get("protobuf")
	if tag == "" || tag == "-" {
		if field.Name == "TypeMeta" || field.Tag.Get("json") == "-" {
			return result, false
		}
		protoFail("%v.%s has no protobuf tag", owner, field.Name)
	}
	number, err := strconv.Atoi(strings.Split(tag, ",")[1])
	if err != nil || number < 1 || number > 255 {
		protoFail("%v.%s: number %q", owner, field.Name, tag)
	}
	result.number = number
	options := strings.Split(field.Tag.Get("json"), ",")
	result.json = options[0]
	for _, option := range options[1:] {
		switch option {
		case "omitempty":
			result.omitEmpty = true
		case "omitzero":
			result.omitZero = true
		case "inline":
			result.inline = true
		default:
			protoFail("%v.%s: JSON option %q", owner, field.Name, option)
		}
	}
	if result.json == "" && field.Anonymous {
		result.inline = true
	}
	if result.inline != (result.json == "") {
		protoFail("%v.%s: inline, or a name", owner, field.Name)
	}
	kind := field.Type
	_, special := protoSpecials[kind]
	switch {
	case special:
		result.container = "ONE"
	case kind.Kind() == reflect.Pointer:
		result.container, kind = "POINTER", kind.Elem()
	case kind.Kind() == reflect.Map:
		if kind.Key().Kind() != reflect.String {
			protoFail("%v.%s: map key", owner, field.Name)
		}
		result.container, kind = "MAP", kind.Elem()
	case kind.Kind() == reflect.Slice && kind.Elem().Kind() != reflect.Uint8 && !protoWrapper(kind):
		result.container, kind = "LIST", kind.Elem()
		if kind.Kind() == reflect.Pointer {
			protoFail("%v.%s: list of pointers", owner, field.Name)
		}
	default:
		result.container = "ONE"
	}
	result.kind, result.child = protoValueKind(kind, tag)
	if result.inline && (result.container != "ONE" || result.kind != "MESSAGE") {
		protoFail("%v.%s: inline, but no message", owner, field.Name)
	}
	if result.child != nil {
		t.add(result.child)
	}
	return result, true
}

func (t *protoTable) add(kind reflect.Type) *protoMessage {
	if message, ok := t.messages[kind]; ok {
		return message
	}
	message := &protoMessage{name: protoName(kind)}
	t.messages[kind] = message
	t.order = append(t.order, kind)
	for i := 0; i < kind.NumField(); i++ {
		if field, ok := t.field(kind, kind.Field(i)); ok {
			message.fields = append(message.fields, field)
		}
	}
	for i, field := range message.fields {
		message.numbers = append(message.numbers, i)
		if !field.inline {
			message.names = append(message.names, [2]int{i, 255})
			continue
		}
		for j := range t.messages[field.child].names {
			message.names = append(message.names, [2]int{i, j})
		}
	}
	sort.Slice(message.numbers, func(a, b int) bool {
		return message.fields[message.numbers[a]].number < message.fields[message.numbers[b]].number
	})
	sort.Slice(message.names, func(a, b int) bool { return t.nameOf(message, a) < t.nameOf(message, b) })
	for i := 1; i < len(message.names); i++ {
		if t.nameOf(message, i-1) == t.nameOf(message, i) {
			protoFail("%v: two fields %q", kind, t.nameOf(message, i))
		}
	}
	return message
}

func (t *protoTable) nameOf(message *protoMessage, index int) string {
	entry := message.names[index]
	field := message.fields[entry[0]]
	if entry[1] == 255 {
		return field.json
	}
	return t.nameOf(t.messages[field.child], entry[1])
}

func protoTableBuild() (*protoTable, []protoKind) {
	table := &protoTable{messages: map[reflect.Type]*protoMessage{}}
	kinds := protoKinds()
	for _, kind := range kinds {
		table.add(kind.kind)
	}
	sort.Slice(table.order, func(i, j int) bool { return table.messages[table.order[i]].name < table.messages[table.order[j]].name })
	for i := 1; i < len(table.order); i++ {
		if table.messages[table.order[i-1]].name == table.messages[table.order[i]].name {
			protoFail("two messages are called %s", table.messages[table.order[i]].name)
		}
	}
	return table, kinds
}

func (t *protoTable) print(kinds []protoKind, out *bufio.Writer) {
	fmt.Fprintf(out, "/* Made by `peers proto-table` from the types of k8s.io/api %s; do not edit.\n"+
		" * MESSAGE(name, first field, fields, first name, names, whether it has kind and apiVersion, bits of the fields that are written when absent); FIELD(number, JSON name, type, container, what is\n"+
		" * done when empty, message of the value) in JSON order; NUMBERS: a message's fields by number; NAMES: its JSON names in order, each\n"+
		" * P(field, 255 or the place among the names of the inlined message); KIND(kind, apiVersion, message) by kind, then apiVersion. */\n",
		protoModuleVersion("k8s.io/api"))
	most, fields, names := 0, 0, 0
	fmt.Fprint(out, "#ifdef MESSAGE\n")
	for _, kind := range t.order {
		message := t.messages[kind]
		typeMeta := 0
		if _, ok := kind.FieldByName("TypeMeta"); ok {
			typeMeta = 1
		}
		always := uint64(0)
		for i, field := range message.fields {
			value := field.container == "ONE" && (field.kind == "MESSAGE" || protoIsSpecial(field.kind)) && !field.omitZero
			if field.inline || value || !field.omitEmpty && !field.omitZero {
				always |= 1 << i
			}
		}
		fmt.Fprintf(out, "MESSAGE(%s, %d, %d, %d, %d, %d, %#x)\n", message.name, fields, len(message.fields), names, len(message.names), typeMeta, always)
		fields += len(message.fields)
		names += len(message.names)
		most = max(most, len(message.fields))
	}
	fmt.Fprint(out, "#endif\n\n#ifdef FIELD\n")
	for _, kind := range t.order {
		message := t.messages[kind]
		if len(message.fields) > 0 {
			fmt.Fprintf(out, "/* %s */\n", message.name)
		}
		for _, field := range message.fields {
			empty := "KEEP"
			switch {
			case field.inline:
				empty = "INLINE"
			case field.omitZero && field.kind == "TIME":
				empty = "OMIT_ZERO"
			case field.omitZero:
				protoFail("%v: omitzero", kind)
			case field.omitEmpty:
				empty = "OMIT"
			}
			child := "NONE"
			if field.child != nil {
				child = t.messages[field.child].name
			}
			fmt.Fprintf(out, "FIELD(%d, \"%s\", %s, %s, %s, %s)\n", field.number, field.json, field.kind, field.container, empty, child)
		}
	}
	fmt.Fprint(out, "#endif\n\n#ifdef NUMBERS\n")
	for _, kind := range t.order {
		message := t.messages[kind]
		row := make([]string, 0, len(message.numbers))
		for _, index := range message.numbers {
			row = append(row, strconv.Itoa(index))
		}
		if len(row) > 0 {
			fmt.Fprintf(out, "NUMBERS(%s)\n", strings.Join(row, ", "))
		}
	}
	fmt.Fprint(out, "#endif\n\n#ifdef NAMES\n")
	for _, kind := range t.order {
		message := t.messages[kind]
		row := make([]string, 0, len(message.names))
		for _, entry := range message.names {
			row = append(row, fmt.Sprintf("P(%d, %d)", entry[0], entry[1]))
		}
		if len(row) > 0 {
			fmt.Fprintf(out, "NAMES(%s)\n", strings.Join(row, ", "))
		}
	}
	fmt.Fprint(out, "#endif\n\n#ifdef KIND\n")
	for _, kind := range kinds {
		apiVersion := kind.gvk.GroupVersion().String()
		fmt.Fprintf(out, "KIND(\"%s\", \"%s\", %s)\n", kind.gvk.Kind, apiVersion, t.messages[kind.kind].name)
	}
	fmt.Fprintf(out, "#endif\n\n#ifdef FIELDS_MAX\nFIELDS_MAX(%d)\n#endif\n", most)
}

func protoIsSpecial(kind string) bool {
	for _, special := range protoSpecials {
		if special == kind {
			return true
		}
	}
	return kind == "STRINGS"
}

func protoModuleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "of an unknown version"
}

func runProtoTable(args []string) int {
	flags, _, _ := newFlags("proto-table")
	_ = flags.Parse(args)
	table, kinds := protoTableBuild()
	out := bufio.NewWriter(os.Stdout)
	table.print(kinds, out)
	if out.Flush() != nil {
		return 1
	}
	return 0
}
