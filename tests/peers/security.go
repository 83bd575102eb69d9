package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const securityPatience = 2 * time.Minute // a guard against hanging, not a measure

const securityTokens = `# token,user,uid,groups
token-root,root,1,system:masters
token-ann,ann,2,"dev,ops"
token-bob,bob,3
token-kim,kim,4
`

const securityPolicy = `{"rules": [
  {"groups": ["dev"], "verbs": ["get", "list", "watch", "create", "delete"], "resources": ["configmaps", "pods/status"], "namespaces": ["default"]},
  {"groups": ["dev"], "verbs": ["get"], "nonResourceURLs": ["/metrics"]},
  {"users": ["bob"], "verbs": ["get", "update"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["mine"]},
  {"users": ["kim"], "verbs": ["update"], "apiGroups": [""], "resources": ["namespaces/finalize"]},
  {"users": ["kim"], "verbs": ["get", "patch"], "apiGroups": ["apps"], "resources": ["deployments/scale"], "namespaces": ["default"]},
  {"users": ["kim"], "verbs": ["deletecollection"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["default"]},
  {"users": ["kim"], "verbs": ["get", "create"], "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"]},
  {"users": ["kim"], "verbs": ["update"], "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions/status"]},
  {"users": ["kim"], "verbs": ["list", "patch"], "apiGroups": ["matrix.example.com"], "resources": ["things", "things/status"], "namespaces": ["default"]}
]}`

type securityTest struct {
	report       *report
	program      string
	dir          string
	certificates *testCertificates
	server       *serverProcess
}

func (t *securityTest) path(name string) string { return filepath.Join(t.dir, name) }

func (t *securityTest) write(name, text string) {
	if err := os.WriteFile(t.path(name), []byte(text), 0o600); err != nil {
		t.report.violation("setup", "%v", err)
	}
}

// config reaches the server and shows nothing.
func (t *securityTest) config() *rest.Config {
	return &rest.Config{Host: t.server.url, QPS: -1, Timeout: securityPatience, TLSClientConfig: rest.TLSClientConfig{CAFile: t.certificates.caFile}}
}

func (t *securityTest) client(token, cert string) *kubernetes.Clientset {
	config := t.config()
	config.BearerToken = token
	if cert != "" {
		config.CertFile, config.KeyFile = t.path("tls/"+cert+".pem"), t.path("tls/"+cert+".key")
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.report.violation("setup", "%v", err)
	}
	return client
}

func runSecurity(args []string) int {
	flags, verbose, _ := newFlags("security")
	program := flags.String("vedette", "", "path of the vedette program")
	idle := flags.Int("idle", 200, "connections that begin a handshake and go no further")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	raiseFileLimit()
	report := newReport("security")
	dir, err := os.MkdirTemp("", "peers-security-")
	if err != nil {
		report.violation("setup", "%v", err)
		return report.finish()
	}
	defer os.RemoveAll(dir)
	t := &securityTest{report: report, program: *program, dir: dir}
	if err := t.run(*idle); err != nil {
		report.violation("setup", "%v", err)
	}
	return report.finish()
}

func (t *securityTest) run(idle int) (err error) {
	if t.certificates, err = makeTestCertificates(t.path("tls")); err != nil {
		return err
	}
	for i, row := range []struct {
		name    string
		subject pkix.Name
	}{{"ann", pkix.Name{CommonName: "ann", Organization: []string{"dev"}}}, {"eve", pkix.Name{CommonName: "eve"}}} {
		if _, _, err := t.certificates.issue(row.name, row.subject, int64(10+i)); err != nil {
			return err
		}
	}
	other, err := makeTestCertificates(t.path("other"))
	if err != nil {
		return err
	}
	t.write("tokens", securityTokens)
	t.write("policy", securityPolicy)
	t.refusals()
	t.server, err = startServer(t.program, "serve", "--memory", "--listen", "127.0.0.1:0", "--tls-cert", t.certificates.certFile, "--tls-key", t.certificates.keyFile,
		"--client-ca", t.certificates.caFile, "--token-file", t.path("tokens"), "--authorization-policy", t.path("policy"), "--watches-per-client", "20")
	if err != nil {
		return err
	}
	defer t.server.kill()
	if _, err := t.server.awaitReady(securityPatience); err != nil {
		return err
	}
	t.report.check(strings.HasPrefix(t.server.url, "https://127.0.0.1:"), "H-504", "the ready line says %s", t.server.url)
	t.who(other)
	t.matrix()
	t.everyEndpoint()
	t.impersonation()
	t.reviews()
	t.limits()
	t.bulk()
	t.handshakes(idle)
	t.reload()
	t.report.check(t.server.terminate() == nil, "clean shutdown", "the server ended with an error: %s", t.server.stderr())
	return nil
}

// refusals: servers that must not start, with what they say.
func (t *securityTest) refusals() {
	t.write("bad-tokens", "token-root,root\n")
	t.write("bad-policy", `{"rules":[{"users":["a"],"verbs":["get"],"resource":["pods"]}]}`)
	cert, key, ca := t.certificates.certFile, t.certificates.keyFile, t.certificates.caFile
	for _, row := range []struct {
		says string
		args []string
	}{
		{"without authentication only loopback", []string{"--listen", "0.0.0.0:0"}},
		{"without authentication only loopback", []string{"--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key}},
		{"in the clear", []string{"--listen", "0.0.0.0:0", "--token-file", t.path("tokens")}},
		{"must be given together", []string{"--listen", "127.0.0.1:0", "--tls-cert", cert}},
		{"needs TLS", []string{"--listen", "127.0.0.1:0", "--client-ca", ca}},
		{"needs authenticated clients", []string{"--listen", "127.0.0.1:0", "--authorization-policy", t.path("policy")}},
		{"bad-tokens: line 1", []string{"--listen", "127.0.0.1:0", "--token-file", t.path("bad-tokens")}},
		{"bad-policy: rules[0].resource: unknown key", []string{"--listen", "127.0.0.1:0", "--token-file", t.path("tokens"), "--authorization-policy", t.path("bad-policy")}},
		{"no-such-file", []string{"--listen", "127.0.0.1:0", "--tls-cert", t.path("no-such-file"), "--tls-key", key}},
		{"not match\x00mismatch", []string{"--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", t.path("tls/ann.key")}},
	} {
		command := exec.Command(t.program, append([]string{"serve", "--memory"}, row.args...)...)
		var stderr bytes.Buffer
		command.Stderr = &stderr
		err := command.Run()
		code := -1
		if command.ProcessState != nil {
			code = command.ProcessState.ExitCode()
		}
		says := false
		for _, text := range strings.Split(row.says, "\x00") {
			says = says || strings.Contains(stderr.String(), text)
		}
		t.report.check(code == 2 && says, "bad flags", "%v: %v, exit status %d, stderr %q instead of %q", row.args, err, code, stderr.String(), row.says)
		t.report.check(!strings.Contains(stderr.String(), "token-"), "no secrets in messages", "%q", stderr.String())
	}
	server, err := startServer(t.program, "serve", "--memory", "--listen", "0.0.0.0:0", "--insecure-no-auth")
	if t.report.check(err == nil, "--insecure-no-auth", "%v", err) {
		_, err = server.awaitReady(securityPatience)
		t.report.check(err == nil, "--insecure-no-auth", "%v", err)
		server.kill()
	}
}

// who: each way to show who one is, and what counts when several are shown.
func (t *securityTest) who(other *testCertificates) {
	ctx := context.Background()
	for _, row := range []struct{ token, cert, user, groups string }{
		{"token-ann", "", "ann", "dev ops system:authenticated"},
		{"", "ann", "ann", "dev system:authenticated"},
		{"token-bob", "ann", "bob", "system:authenticated"},
		{"token-root", "", "root", "system:masters system:authenticated"},
	} {
		review, err := t.client(row.token, row.cert).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if t.report.check(err == nil, "whoami", "%s %s: %v", row.token, row.cert, err) {
			info := review.Status.UserInfo
			t.report.check(info.Username == row.user && strings.Join(info.Groups, " ") == row.groups, "whoami", "%s %s is %v", row.token, row.cert, info)
		}
	}
	// A wrong token is refused whatever else is shown; nothing shown is refused too, except for health and version.
	for _, row := range [][2]string{{"token-an", ""}, {"token-ann ", ""}, {"wrong", "ann"}, {"", ""}} {
		_, err := t.client(row[0], row[1]).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		if row[0] == "token-ann " {
			continue // Go's transport takes blanks away
		}
		t.report.check(apierrors.IsUnauthorized(err), "401", "%v: %v", row, err)
	}
	version, err := t.client("", "").Discovery().ServerVersion()
	t.report.check(err == nil && version.Major == "1", "public paths", "/version without anything: %v", err)
	// A certificate of an authority that is not ours names nobody, and a token beside it still counts.
	config := t.config()
	config.CertFile, config.KeyFile = other.certFile, other.keyFile
	stranger, _ := kubernetes.NewForConfig(config)
	_, err = stranger.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	t.report.check(apierrors.IsUnauthorized(err), "401", "a stranger's certificate: %v", err)
	config.BearerToken = "token-ann"
	stranger, _ = kubernetes.NewForConfig(config)
	_, err = stranger.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	t.report.check(err == nil, "401", "a stranger's certificate beside a token: %v", err)
}

// matrix: users x verbs x resources x namespaces, against what the policy says.
func (t *securityTest) matrix() {
	ctx := context.Background()
	_, err := t.client("token-root", "").CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	t.report.check(err == nil, "policy", "root creates a secret: %v", err)
	is := func(allowed bool, err error) bool {
		if allowed {
			return err == nil || apierrors.IsNotFound(err)
		}
		return apierrors.IsForbidden(err)
	}
	for _, user := range []struct {
		token, cert string
		isDev       bool
	}{{"token-ann", "", true}, {"", "ann", true}, {"token-bob", "", false}, {"", "eve", false}} {
		client := t.client(user.token, user.cert)
		name := user.token + user.cert
		for _, namespace := range []string{"default", "kube-system", ""} {
			may := user.isDev && namespace == "default"
			_, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
			t.report.check(is(may, err), "policy", "%s lists configmaps in %q: %v", name, namespace, err)
			_, err = client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
			t.report.check(is(false, err), "policy", "%s lists secrets in %q: %v", name, namespace, err)
			watching, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{})
			t.report.check(is(may, err), "policy", "%s watches configmaps in %q: %v", name, namespace, err)
			if err == nil {
				watching.Stop()
			}
			if namespace == "" {
				continue
			}
			made, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
			t.report.check(is(may, err), "policy", "%s creates a configmap in %s: %v", name, namespace, err)
			if err == nil {
				_, err = client.CoreV1().ConfigMaps(namespace).Update(ctx, made, metav1.UpdateOptions{})
				t.report.check(is(false, err), "policy", "%s updates: %v", name, err)
				_, err = client.CoreV1().ConfigMaps(namespace).Patch(ctx, "m", "application/merge-patch+json", []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
				t.report.check(is(false, err), "policy", "%s patches: %v", name, err)
				err = client.CoreV1().ConfigMaps(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
				t.report.check(is(false, err), "policy", "%s deletes all: %v", name, err)
			}
			err = client.CoreV1().ConfigMaps(namespace).Delete(ctx, "m", metav1.DeleteOptions{})
			t.report.check(is(may, err), "policy", "%s deletes in %s: %v", name, namespace, err)
			_, err = client.CoordinationV1().Leases(namespace).Get(ctx, "mine", metav1.GetOptions{})
			t.report.check(is(user.token == "token-bob", err), "policy", "%s gets the lease in %s: %v", name, namespace, err)
			_, err = client.CoordinationV1().Leases(namespace).Get(ctx, "others", metav1.GetOptions{})
			t.report.check(is(false, err), "policy", "%s gets another lease in %s: %v", name, namespace, err)
		}
		_, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		t.report.check(is(user.isDev, err), "policy", "%s gets /metrics: %v", name, err)
		_, err = client.CoreV1().RESTClient().Get().AbsPath("/debug/vedette").DoRaw(ctx)
		t.report.check(is(false, err), "policy", "%s gets /debug/vedette: %v", name, err)
		_, err = client.Discovery().ServerPreferredResources()
		t.report.check(err == nil, "discovery", "%s: %v", name, err)
	}
	_, err = t.client("token-bob", "").CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{})
	t.report.check(err != nil && err.Error() == `secrets "s" is forbidden: User "bob" cannot get resource "secrets" in API group "" in the namespace "default"`,
		"403", "the message is %v", err)
	_, err = t.client("token-bob", "").CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	t.report.check(err != nil && err.Error() == `nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope`, "403", "the message is %v", err)
}

func (t *securityTest) reviews() {
	ctx := context.Background()
	ann := t.client("token-ann", "")
	for _, row := range []struct {
		attributes authorizationv1.ResourceAttributes
		allowed    bool
	}{
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps", Namespace: "default"}, true},
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps"}, false},
		{authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "status", Namespace: "default", Name: "x"}, true},
		{authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "default", Name: "x"}, false},
	} {
		attributes := row.attributes
		review, err := ann.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}, metav1.CreateOptions{})
		if t.report.check(err == nil, "can-i", "%v: %v", row.attributes, err) {
			t.report.check(review.Status.Allowed == row.allowed && (review.Status.Reason == "") == row.allowed, "can-i", "%v: %v", row.attributes, review.Status)
			t.report.check(review.Spec.ResourceAttributes != nil && review.Spec.ResourceAttributes.Verb == attributes.Verb, "can-i", "spec %v", review.Spec)
		}
	}
	_, err := ann.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{}, metav1.CreateOptions{})
	t.report.check(apierrors.IsInvalid(err), "can-i", "a review of nothing: %v", err)
	rules, err := ann.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}, metav1.CreateOptions{})
	if t.report.check(err == nil, "can-i --list", "%v", err) {
		t.report.check(len(rules.Status.ResourceRules) == 1 && len(rules.Status.NonResourceRules) == 2, "can-i --list", "%v", rules.Status)
	}
}

// limits: a client is a user, whatever it calls itself and however it shows who it is.
func (t *securityTest) limits() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	taken, refused := 0, 0
	for i := range 30 {
		config := t.config()
		config.UserAgent = fmt.Sprintf("agent-%d", i)
		if i%2 == 0 {
			config.BearerToken = "token-ann"
		} else {
			config.CertFile, config.KeyFile = t.path("tls/ann.pem"), t.path("tls/ann.key")
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.report.violation("setup", "%v", err)
			return
		}
		request := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/configmaps").Param("watch", "1").MaxRetries(0)
		body, err := request.Stream(ctx)
		switch {
		case err == nil:
			taken++
			defer body.Close()
		case apierrors.IsTooManyRequests(err):
			refused++
		default:
			t.report.violation("limits", "%v", err)
		}
	}
	t.report.check(taken == 20 && refused == 10, "limits", "%d watches of 20 were taken, %d refused", taken, refused)
	watching, err := t.client("token-root", "").CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	if t.report.check(err == nil, "limits", "another user: %v", err) {
		watching.Stop()
	}
}

// bulk: an informer over TLS, and an answer larger than what sockets hold to a client that reads slowly: every byte once.
func (t *securityTest) bulk() {
	ctx, cancel := context.WithTimeout(context.Background(), securityPatience)
	defer cancel()
	root := t.client("token-root", "")
	const count, size = 600, 40000
	text := strings.Repeat("0123456789", size/10)
	factory := informers.NewSharedInformerFactoryWithOptions(t.client("", "ann"), 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(ctx.Done())
	for i := range count {
		_, err := root.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("big-%d", i)},
			Data: map[string]string{"text": text, "number": fmt.Sprint(i)}}, metav1.CreateOptions{})
		if !t.report.check(err == nil, "bulk", "create %d: %v", i, err) {
			return
		}
	}
	pollUntil(securityPatience, func() bool { return len(informer.GetStore().List()) >= count || ctx.Err() != nil })
	if t.report.check(cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) && len(informer.GetStore().List()) == count, "bulk", "the informer has %d of %d",
		len(informer.GetStore().List()), count) {
		for _, item := range informer.GetStore().List() {
			configMap := item.(*corev1.ConfigMap)
			t.report.check(configMap.Data["text"] == text && configMap.Name == "big-"+configMap.Data["number"], "bulk", "%s arrived with other content", configMap.Name)
		}
	}
	connection, err := t.dial("")
	if !t.report.check(err == nil, "bulk", "%v", err) {
		return
	}
	defer connection.Close()
	_, _ = fmt.Fprintf(connection, "GET /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token-root\r\nConnection: close\r\nAccept: application/json\r\n\r\n")
	total := 0
	buffer := make([]byte, 7001)
	_ = connection.SetReadDeadline(time.Now().Add(securityPatience))
	tail := []byte{}
	for {
		n, err := connection.Read(buffer)
		total += n
		tail = append(tail, buffer[:n]...)
		if len(tail) > 16 {
			tail = tail[len(tail)-16:]
		}
		if err != nil {
			t.report.check(err == io.EOF, "bulk", "the list ended with %v", err)
			break
		}
	}
	t.report.check(total > count*size && strings.HasSuffix(string(tail), "]}\n\r\n0\r\n\r\n"), "bulk", "%d bytes, at the end %q", total, tail)
	for i := range count {
		_ = root.CoreV1().ConfigMaps("default").Delete(ctx, fmt.Sprintf("big-%d", i), metav1.DeleteOptions{})
	}
}

func (t *securityTest) dial(cert string) (*tls.Conn, error) {
	config := &tls.Config{RootCAs: t.certificates.client.RootCAs, ServerName: "localhost", NextProtos: []string{"h2", "http/1.1"}}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(t.path("tls/"+cert+".pem"), t.path("tls/"+cert+".key"))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return tls.Dial("tcp", strings.TrimPrefix(t.server.url, "https://"), config)
}

// handshakes: what is no TLS, or stops in its middle, is cut, and nobody else notices.
func (t *securityTest) handshakes(idle int) {
	address := strings.TrimPrefix(t.server.url, "https://")
	response, err := http.Get("http://" + address + "/version")
	if t.report.check(err == nil, "plain HTTP", "%v", err) {
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		t.report.check(response.StatusCode == 400 && strings.Contains(string(body), "HTTPS server"), "plain HTTP", "%d %s", response.StatusCode, body)
	}
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: t.certificates.client.RootCAs, ServerName: "localhost", MinVersion: version, MaxVersion: version})
		if !t.report.check(err != nil, "TLS 1.2", "version %x was accepted", version) {
			_ = connection.Close()
		}
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: t.certificates.client.RootCAs, ServerName: "localhost", MinVersion: version, MaxVersion: version,
			NextProtos: []string{"h2", "http/1.1"}})
		if t.report.check(err == nil, "TLS 1.2", "version %x: %v", version, err) {
			t.report.check(connection.ConnectionState().NegotiatedProtocol == "http/1.1", "H-504", "ALPN chose %q", connection.ConnectionState().NegotiatedProtocol)
			_ = connection.Close()
		}
	}
	hello := clientHello(address)
	var cut []net.Conn
	for i := range idle {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.report.violation("handshakes", "%v", err)
			break
		}
		switch i % 4 {
		case 0: // nothing at all
		case 1:
			_, _ = connection.Write(hello[:len(hello)/2])
		case 2:
			_, _ = connection.Write(hello)
		case 3:
			_, _ = connection.Write(bytes.Repeat([]byte{0x16, 3, 1, 0x40, 0}, 5000))
		}
		cut = append(cut, connection)
	}
	_, err = t.client("token-ann", "").CoreV1().ConfigMaps("default").List(context.Background(), metav1.ListOptions{})
	t.report.check(err == nil, "handshakes", "a healthy client beside %d that stop in their handshake: %v", len(cut), err)
	for i, connection := range cut { // the deadline of a head holds for handshakes, too
		_ = connection.SetReadDeadline(time.Now().Add(securityPatience))
		_, err := io.Copy(io.Discard, connection)
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.report.violation("handshakes", "connection %d was not cut", i)
		}
		_ = connection.Close()
	}
	t.report.check(true, "handshakes", "")
}

// clientHello is what Go's client sends first.
func clientHello(address string) []byte {
	ours, theirs := net.Pipe()
	go func() {
		_ = tls.Client(theirs, &tls.Config{ServerName: "localhost", InsecureSkipVerify: true}).Handshake()
	}()
	buffer := make([]byte, 4096)
	n, _ := ours.Read(buffer)
	_ = ours.Close()
	_ = theirs.Close()
	return buffer[:n]
}

// reload: SIGHUP brings another certificate, other tokens and another policy for what comes next; running watches go on. Broken files change nothing.
func (t *securityTest) reload() {
	ctx := context.Background()
	serial := func() int64 {
		connection, err := t.dial("")
		if err != nil {
			return -1
		}
		defer connection.Close()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	hup := func(says string) {
		before := strings.Count(t.server.stderr(), says)
		_ = t.server.command.Process.Signal(syscall.SIGHUP)
		found := t.server.awaitStderr(securityPatience, func(text string) bool { return strings.Count(text, says) > before })
		t.report.check(found, "reload", "never said %q: %s", says, t.server.stderr())
	}
	watching, err := t.client("token-ann", "").CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	if !t.report.check(err == nil, "reload", "%v", err) {
		return
	}
	defer watching.Stop()
	t.report.check(serial() == 2, "reload", "the certificate before is %d", serial())
	t.write("tokens", "broken\n")
	hup("the previous settings stay in use")
	_, err = t.client("token-bob", "").Discovery().ServerVersion()
	t.report.check(err == nil, "reload", "after broken files: %v", err)
	certFile, keyFile, err := t.certificates.issue("next", pkix.Name{CommonName: "next"}, 77)
	for from, to := range map[string]string{certFile: t.certificates.certFile, keyFile: t.certificates.keyFile} {
		if err == nil {
			err = os.Rename(from, to)
		}
	}
	t.report.check(err == nil, "setup", "%v", err)
	t.write("tokens", "token-root,root,1,system:masters\ntoken-new,ann,2,dev\n")
	t.write("policy", `{"rules":[{"groups":["dev"],"verbs":["*"],"resources":["secrets"]}]}`)
	hup("were read again")
	pollUntil(securityPatience, func() bool { return serial() == 77 }) // each event loop takes the new files when it wakes
	t.report.check(serial() == 77, "reload", "the certificate afterwards is %d", serial())
	pollUntil(securityPatience, func() bool {
		_, err = t.client("token-ann", "").CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return apierrors.IsUnauthorized(err)
	})
	t.report.check(apierrors.IsUnauthorized(err), "reload", "a token that is gone: %v", err)
	_, err = t.client("token-new", "").CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	t.report.check(err == nil, "reload", "the new policy: %v", err)
	_, err = t.client("token-new", "").CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	t.report.check(apierrors.IsForbidden(err), "reload", "the old policy: %v", err)
	_, err = t.client("token-root", "").CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "after"}}, metav1.CreateOptions{})
	t.report.check(err == nil, "reload", "%v", err)
	for {
		select {
		case event, ok := <-watching.ResultChan():
			if !t.report.check(ok, "reload", "the watch from before has ended") {
				return
			}
			if configMap, is := event.Object.(*corev1.ConfigMap); is && event.Type == watch.Added && configMap.Name == "after" {
				return
			}
		case <-time.After(securityPatience):
			t.report.violation("reload", "the watch from before is silent")
			return
		}
	}
}
