package main

// proto-diff: objects of every kind of the tables, filled at random by seed, encoded by the real libraries as protobuf and as JSON, and given to the C
// transcoder in both directions. Its JSON must say what Go's says, in the same order, and Go must read its protobuf back as the same object.
// proto-vectors prints a few such objects for the unit test.

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// protoFill fills values. density 0 leaves everything empty, 1 fills everything.
type protoFill struct {
	random  *rand.Rand
	density float64
}

var protoTexts = []string{"a", "nginx:1.27", "with space", "quote\" and \\ backslash", "line\nbreak\ttab\r\b\f\x01\x1f", "<&>\u2028\u2029",
	"\u00fc\u4f60\u597d \U0001f600", "\x7f/-._~", "0123456789abcdef0123456789abcdef0123456789abcdef"}
var protoQuantities = []string{"0", "1", "100m", "1500m", "2Gi", "128Mi", "1e3", "12345678901234567890", "-5", "0.5", "1Ki", "3T"}

func (f *protoFill) some() bool { return f.random.Float64() < f.density }

func (f *protoFill) text() string {
	if f.density < 1 && f.random.Intn(4) == 0 {
		return ""
	}
	text := protoTexts[f.random.Intn(len(protoTexts))]
	if f.random.Intn(16) == 0 {
		text = strings.Repeat(text, 1+f.random.Intn(300))
	}
	return text
}

func (f *protoFill) time(micro bool) time.Time {
	if f.density < 1 && f.random.Intn(4) == 0 {
		return time.Time{}
	}
	seconds := f.random.Int63n(4000000000) - 1000000000
	if f.random.Intn(8) == 0 {
		seconds = f.random.Int63n(315537897599) - 62135596799
	}
	nanoseconds := int64(0)
	if micro {
		nanoseconds = f.random.Int63n(1000000) * 1000
	}
	return time.Unix(seconds, nanoseconds)
}

// special fills a type that has a JSON form of its own; false: it has none.
func (f *protoFill) special(value reflect.Value) bool {
	switch target := value.Addr().Interface().(type) {
	case *metav1.Time:
		target.Time = f.time(false)
	case *metav1.MicroTime:
		target.Time = f.time(true)
	case *resource.Quantity:
		*target = resource.MustParse(protoQuantities[f.random.Intn(len(protoQuantities))])
		_ = target.String()
	case *intstr.IntOrString:
		if f.random.Intn(2) == 0 {
			*target = intstr.FromInt32(int32(f.random.Uint32()))
		} else {
			*target = intstr.FromString(f.text())
		}
	case *metav1.FieldsV1:
		target.Raw = []byte(`{"f:metadata":{"f:labels":{".":{},"f:a\"b":{}}}}`)
	case *runtime.RawExtension:
		target.Raw = []byte(`{"apiVersion":"v1","kind":"Thing","n":[1,2.5,-3e7,null,true],"s":"\u00fcx"}`)
	default:
		return false
	}
	return true
}

func (f *protoFill) fill(value reflect.Value, depth int) {
	if f.special(value) {
		return
	}
	some := func() bool { return f.some() && (depth < 12 || f.random.Intn(4) == 0) }
	switch value.Kind() {
	case reflect.Struct:
		for i := 0; i < value.NumField(); i++ {
			if value.Type().Field(i).Name != "TypeMeta" && value.Type().Field(i).Tag.Get("protobuf") != "" {
				f.fill(value.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if some() {
			value.Set(reflect.New(value.Type().Elem()))
			f.fill(value.Elem(), depth+1)
		}
	case reflect.Slice:
		if !some() {
			return
		}
		if value.Type().Elem().Kind() == reflect.Uint8 {
			content := make([]byte, f.random.Intn(20))
			f.random.Read(content)
			value.SetBytes(content)
			return
		}
		value.Set(reflect.MakeSlice(value.Type(), 1+f.random.Intn(2), 2))
		for i := 0; i < value.Len(); i++ {
			f.fill(value.Index(i), depth+1)
		}
	case reflect.Map:
		if !some() {
			return
		}
		value.Set(reflect.MakeMap(value.Type()))
		for i := f.random.Intn(3); i >= 0; i-- {
			key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
			key.SetString(f.text())
			f.fill(element, depth+1)
			value.SetMapIndex(key, element)
		}
	case reflect.String:
		if f.density > 0 {
			value.SetString(f.text())
		}
	case reflect.Bool:
		value.SetBool(f.some() && (f.density == 1 || f.random.Intn(2) == 0))
	case reflect.Int32:
		if some() {
			value.SetInt(int64(int32(f.random.Uint32())) >> f.random.Intn(32))
		}
	case reflect.Int64, reflect.Int:
		if some() {
			value.SetInt(int64(f.random.Uint64()) >> f.random.Intn(64))
		}
	default:
		protoFail("cannot fill %v", value.Type())
	}
}

type protoCase struct {
	kind  protoKind
	proto []byte
	json  []byte         // Go's, of what Go reads from proto
	want  runtime.Object // what Go reads from json: not quite the object, since a pointer to a zero time is null there
}

func protoDecode(kind reflect.Type, data []byte) (runtime.Object, error) {
	object := reflect.New(kind).Interface().(runtime.Object)
	var unknown runtime.Unknown
	if len(data) < 4 || string(data[:4]) != "k8s\x00" {
		return nil, fmt.Errorf("no envelope")
	}
	if err := unknown.Unmarshal(data[4:]); err != nil {
		return nil, err
	}
	if err := object.(interface{ Unmarshal([]byte) error }).Unmarshal(unknown.Raw); err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(unknown.GroupVersionKind())
	return object, nil
}

func protoEncode(object runtime.Object) ([]byte, error) {
	var out bytes.Buffer
	err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &out)
	return out.Bytes(), err
}

func protoMakeCase(kind protoKind, random *rand.Rand, density float64) (protoCase, error) {
	object := reflect.New(kind.kind)
	(&protoFill{random, density}).fill(object.Elem(), 0)
	made := object.Interface().(runtime.Object)
	made.GetObjectKind().SetGroupVersionKind(kind.gvk)
	encoded, err := protoEncode(made)
	if err != nil {
		return protoCase{}, err
	}
	decoded, err := protoDecode(kind.kind, encoded)
	if err != nil {
		return protoCase{}, err
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		return protoCase{}, err
	}
	want := reflect.New(kind.kind).Interface().(runtime.Object)
	err = json.Unmarshal(text, want)
	return protoCase{kind, encoded, text, want}, err
}

// protoPlain is JSON text without the escapes that only Go writes.
func protoPlain(text []byte) (string, error) {
	if !json.Valid(text) {
		return "", fmt.Errorf("not valid JSON: %.200s", text)
	}
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(string(text))
	return plain, nil
}

type protoTool struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func protoStartTool(path string) (*protoTool, error) {
	tool := &protoTool{cmd: exec.Command(path)}
	tool.cmd.Stderr = os.Stderr
	in, err := tool.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := tool.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	tool.in, tool.out = in, bufio.NewReaderSize(out, 1<<20)
	return tool, tool.cmd.Start()
}

func protoAnswer(word string) ([]byte, error) {
	if strings.HasPrefix(word, "!") {
		return nil, fmt.Errorf("%s", word[1:])
	}
	return base64.StdEncoding.DecodeString(word)
}

func (t *protoTool) ask(proto, text []byte) (gotJSON, gotProto []byte, jsonErr, protoErr, err error) {
	_, err = fmt.Fprintf(t.in, "%s %s\n", base64.StdEncoding.EncodeToString(proto), base64.StdEncoding.EncodeToString(text))
	if err != nil {
		return
	}
	line, err := t.out.ReadString('\n')
	if err != nil {
		return
	}
	line = strings.TrimSuffix(line, "\n")
	first, second, _ := strings.Cut(line, "\t")
	gotJSON, jsonErr = protoAnswer(first)
	gotProto, protoErr = protoAnswer(second)
	return
}

func (t *protoTool) check(report *report, c protoCase) bool {
	name := c.kind.gvk.GroupVersion().String() + " " + c.kind.gvk.Kind
	gotJSON, gotProto, jsonErr, protoErr, err := t.ask(c.proto, c.json)
	if !report.check(err == nil, "H-324", "%s: the tool ended: %v", name, err) {
		return false
	}
	if report.check(jsonErr == nil, "H-324", "%s to JSON: %v", name, jsonErr) {
		want, _ := protoPlain(c.json)
		got, err := protoPlain(gotJSON)
		at := 0
		for at < len(got) && at < len(want) && got[at] == want[at] {
			at++
		}
		from := max(0, at-60)
		report.check(err == nil && got == want, "H-327", "%s to JSON: %v\n got ...%.200s\nwant ...%.200s", name, err, got[from:], want[from:])
		read := reflect.New(c.kind.kind).Interface().(runtime.Object)
		err = json.Unmarshal(gotJSON, read)
		report.check(err == nil && equality.Semantic.DeepEqual(read, c.want), "H-327", "%s: Go reads the JSON as another object (%v)", name, err)
	}
	if report.check(protoErr == nil, "H-328", "%s to protobuf: %v", name, protoErr) {
		read, err := protoDecode(c.kind.kind, gotProto)
		report.check(err == nil && equality.Semantic.DeepEqual(read, c.want), "H-328", "%s: Go reads the protobuf as another object (%v)\n%.2000s", name, err, c.json)
	}
	return true
}

func runProtoDiff(args []string) int {
	flags, verbose, seed := newFlags("proto-diff")
	path := flags.String("tool", "", "the program k8s_proto_peer")
	rounds := flags.Int("rounds", 6, "objects of each kind")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	if *path == "" {
		fmt.Fprintln(os.Stderr, "peers proto-diff: --tool is missing")
		return 2
	}
	report := newReport("proto-diff")
	tool, err := protoStartTool(*path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers proto-diff:", err)
		return 1
	}
	random := rand.New(rand.NewSource(*seed))
	cases := 0
	for round := 0; round < *rounds; round++ {
		density := []float64{1, 0, 0.7, 0.4}[round%4]
		for _, kind := range protoKinds() {
			c, err := protoMakeCase(kind, random, density)
			if !report.check(err == nil, "H-327", "%v: %v", kind.gvk, err) || !tool.check(report, c) {
				return report.finish()
			}
			cases++
		}
	}
	_ = tool.in.Close()
	err = tool.cmd.Wait()
	report.check(err == nil, "H-324", "the tool: %v", err)
	report.figure("cases", cases)
	return report.finish()
}

// protoVectorKinds are those of the unit test: small, and between them every type of value.
var protoVectorKinds = []string{"v1 ConfigMap", "v1 Secret", "v1 Namespace", "v1 Pod", "v1 Node", "v1 Service", "v1 Event", "v1 Status", "v1 PersistentVolume",
	"apps/v1 Deployment", "apps/v1 ControllerRevision", "batch/v1 CronJob", "coordination.k8s.io/v1 Lease", "discovery.k8s.io/v1 EndpointSlice",
	"certificates.k8s.io/v1 CertificateSigningRequest", "meta.k8s.io/v1 PartialObjectMetadata"}

func runProtoVectors(args []string) int {
	flags, _, seed := newFlags("proto-vectors")
	_ = flags.Parse(args)
	random := rand.New(rand.NewSource(*seed))
	fmt.Printf("/* Made by `peers proto-vectors`: VECTOR(kind, envelope in base64, JSON as Go writes it, without the escapes that only Go writes). */\n")
	for _, name := range protoVectorKinds {
		for _, kind := range protoKinds() {
			if kind.gvk.GroupVersion().String()+" "+kind.gvk.Kind != name {
				continue
			}
			for made := 0; made < 2; {
				c, err := protoMakeCase(kind, random, []float64{0, 0.3}[made])
				if err != nil {
					fmt.Fprintln(os.Stderr, "peers proto-vectors:", err)
					return 1
				}
				again, _ := json.Marshal(c.want)
				if made == 1 && (len(c.json) < 300 || len(c.json) > 2000) || !bytes.Equal(again, c.json) {
					continue // readable, and the same after a way back
				}
				made++
				plain, _ := protoPlain(c.json)
				fmt.Printf("VECTOR(%q,\n\t\"%s\",\n\t\"%s\")\n", name, base64.StdEncoding.EncodeToString(c.proto),
					strings.NewReplacer(`\`, `\\`, `"`, `\"`, "??", `?\?`).Replace(plain))
			}
		}
	}
	return 0
}
