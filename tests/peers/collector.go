package main

import (
	"context"
	"fmt"
	"math/rand"
	"net/url"
	"os"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The garbage collector against a model: objects with owner references, deleted in all ways, while the server is killed (SIGKILL) in the middle of collecting and
// started again on the same data. In the end there is exactly what the model says: nothing left over, nothing deleted wrongly. Then the namespace goes, and the
// server is killed in the middle of that too.
//
//   trees: a root, its children, theirs; each root is kept, or deleted in the background, in the foreground, or with orphans
//   webs:  objects with one or two owners among the earlier ones; some are deleted in the background or in the foreground

const collectorPatience = 5 * time.Minute

type collectorObject struct {
	name   string
	uid    types.UID
	owners []int
	exists bool
}

type collector struct {
	report  *report
	program string
	args    []string
	random  *rand.Rand
	server  *serverProcess
	host    string
	client  kubernetes.Interface
	kills   int
}

func runCollector(args []string) int {
	flags, verbose, seed := newFlags("collector")
	program := flags.String("vedette", "", "path of the vedette program")
	rounds := flags.Int("rounds", 5, "namespaces that are filled, collected and deleted")
	trees := flags.Int("trees", 8, "trees of a namespace")
	web := flags.Int("web", 80, "objects of the web of a namespace")
	_ = flags.Parse(args)
	setVerbose(*verbose)
	report := newReport("collector")
	dataDir, err := os.MkdirTemp("", "peers-collector-")
	if err != nil {
		report.violation("setup", "%v", err)
		return report.finish()
	}
	c := &collector{report: report, program: *program, random: rand.New(rand.NewSource(*seed)), args: append([]string{"serve", "--data-dir", dataDir}, flags.Args()...)}
	err = c.start()
	for round := 0; round < *rounds && err == nil; round++ {
		err = c.round(fmt.Sprintf("collector-%d", round), *trees, *web)
	}
	if err != nil {
		report.violation("collector", "%v", err)
	}
	if c.server != nil {
		c.server.kill()
	}
	report.figure("kills", c.kills)
	report.figure("seed", *seed)
	if report.violated() {
		report.figure("dataDir", dataDir)
	} else {
		os.RemoveAll(dataDir)
	}
	return report.finish()
}

func (c *collector) start() error {
	listen := "127.0.0.1:0"
	if c.host != "" {
		listen = c.host
	}
	server, err := startServer(c.program, append(append([]string(nil), c.args...), "--listen", listen)...)
	if err != nil {
		return err
	}
	c.server = server
	if _, err := server.awaitReady(5 * time.Minute); err != nil {
		return err
	}
	parsed, err := url.Parse(server.url)
	if err != nil {
		return err
	}
	c.host = parsed.Host
	c.client, err = kubernetes.NewForConfig(&rest.Config{Host: server.url, QPS: -1})
	return err
}

// killSoon lets the server live a moment longer, up to the given time.
func (c *collector) killSoon(longest time.Duration) error {
	pause(time.Duration(c.random.Int63n(int64(longest))))
	c.server.kill()
	c.kills++
	return c.start()
}

func (c *collector) create(namespace string, objects []collectorObject, object collectorObject) (collectorObject, error) {
	isTrue := true
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.name}}
	for _, owner := range object.owners {
		reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: objects[owner].name, UID: objects[owner].uid}
		if c.random.Intn(2) == 0 {
			reference.BlockOwnerDeletion = &isTrue
		}
		configMap.OwnerReferences = append(configMap.OwnerReferences, reference)
	}
	created, err := c.client.CoreV1().ConfigMaps(namespace).Create(context.Background(), configMap, metav1.CreateOptions{})
	if err != nil {
		return object, fmt.Errorf("creating %s: %w", object.name, err)
	}
	object.uid = created.UID
	object.exists = true
	return object, nil
}

func (c *collector) delete(namespace, name string, policy metav1.DeletionPropagation) error {
	err := c.client.CoreV1().ConfigMaps(namespace).Delete(context.Background(), name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s (%s): %w", name, policy, err)
	}
	return nil
}

type collectorDeletion struct {
	index  int
	policy metav1.DeletionPropagation
}

// makeTree gives its objects, and what is to be done with the root.
func (c *collector) makeTree(namespace string, number int, objects []collectorObject, deletions []collectorDeletion) ([]collectorObject, []collectorDeletion, error) {
	root := len(objects)
	parents := []int{-1}
	for depth := 0; depth < 3; depth++ {
		var next []int
		for _, parent := range parents {
			for child := 0; child < 3 && (depth > 0 || child == 0); child++ {
				object := collectorObject{name: fmt.Sprintf("tree-%d-%d", number, len(objects)-root)}
				if parent >= 0 {
					object.owners = []int{parent}
				}
				object, err := c.create(namespace, objects, object)
				if err != nil {
					return nil, nil, err
				}
				next = append(next, len(objects))
				objects = append(objects, object)
			}
		}
		parents = next
	}
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan, ""}
	if policy := policies[number%len(policies)]; policy != "" {
		deletions = append(deletions, collectorDeletion{root, policy})
	}
	return objects, deletions, nil
}

func (c *collector) makeWeb(namespace string, size int, objects []collectorObject, deletions []collectorDeletion) ([]collectorObject, []collectorDeletion, error) {
	first := len(objects)
	for i := 0; i < size; i++ {
		object := collectorObject{name: fmt.Sprintf("web-%d", i)}
		for i > 8 && len(object.owners) < 2 && c.random.Intn(3) > 0 {
			owner := first + c.random.Intn(i)
			if len(object.owners) == 0 || object.owners[0] != owner {
				object.owners = append(object.owners, owner)
			}
		}
		object, err := c.create(namespace, objects, object)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, object)
		if c.random.Intn(8) == 0 {
			policy := metav1.DeletePropagationBackground
			if c.random.Intn(2) == 0 {
				policy = metav1.DeletePropagationForeground
			}
			deletions = append(deletions, collectorDeletion{first + i, policy})
		}
	}
	return objects, deletions, nil
}

// expected applies the deletions to the model: who has owners, but none that is there, goes.
func expected(objects []collectorObject, deletions []collectorDeletion) map[string]types.UID {
	for _, deletion := range deletions {
		objects[deletion.index].exists = false
		for i := range objects {
			if deletion.policy != metav1.DeletePropagationOrphan {
				break
			}
			for j, owner := range objects[i].owners {
				if owner == deletion.index {
					objects[i].owners = append(objects[i].owners[:j:j], objects[i].owners[j+1:]...)
					break
				}
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range objects {
			lives := len(objects[i].owners) == 0
			for _, owner := range objects[i].owners {
				lives = lives || objects[owner].exists
			}
			if objects[i].exists && !lives {
				objects[i].exists = false
				changed = true
			}
		}
	}
	left := map[string]types.UID{}
	for _, object := range objects {
		if object.exists {
			left[object.name] = object.uid
		}
	}
	return left
}

func (c *collector) difference(namespace string, left map[string]types.UID) (missing, tooMany []string, err error) {
	list, err := c.client.CoreV1().ConfigMaps(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	found := map[string]types.UID{}
	for _, item := range list.Items {
		found[item.Name] = item.UID
		if left[item.Name] != item.UID {
			tooMany = append(tooMany, item.Name)
		}
	}
	for name, uid := range left {
		if found[name] != uid {
			missing = append(missing, name)
		}
	}
	sort.Strings(missing)
	sort.Strings(tooMany)
	return missing, tooMany, nil
}

func (c *collector) settle(namespace string, left map[string]types.UID) error {
	var missing, tooMany []string
	var err error
	pollUntil(collectorPatience, func() bool {
		missing, tooMany, err = c.difference(namespace, left)
		return err != nil || len(missing) > 0 || len(tooMany) == 0
	})
	if err == nil && c.report.check(len(missing) == 0, "R-667", "%s: deleted wrongly: %s", namespace, strings.Join(missing, " ")) {
		c.report.check(len(tooMany) == 0, "R-667", "%s: left over: %s", namespace, strings.Join(tooMany, " "))
	}
	return err
}

func (c *collector) awaitNamespaceGone(name string) error {
	var namespace *corev1.Namespace
	var err error
	isGone := pollUntil(collectorPatience, func() bool {
		namespace, err = c.client.CoreV1().Namespaces().Get(context.Background(), name, metav1.GetOptions{})
		return err != nil
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case !isGone:
		return fmt.Errorf("namespace %s stays: %+v", name, namespace.Status)
	}
	return err
}

func (c *collector) round(namespace string, trees, web int) error {
	var objects []collectorObject
	var deletions []collectorDeletion
	_, err := c.client.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	for i := 0; i < trees && err == nil; i++ {
		objects, deletions, err = c.makeTree(namespace, i, objects, deletions)
	}
	if err == nil {
		objects, deletions, err = c.makeWeb(namespace, web, objects, deletions)
	}
	if err != nil {
		return err
	}
	for i, deletion := range deletions {
		if err := c.delete(namespace, objects[deletion.index].name, deletion.policy); err != nil {
			return err
		}
		if i == len(deletions)/2 || i == len(deletions)-1 {
			if err := c.killSoon(30 * time.Millisecond); err != nil {
				return err
			}
		}
	}
	left := expected(objects, deletions)
	if err := c.settle(namespace, left); err != nil {
		return err
	}
	// Another life finds nothing more to do.
	if err := c.killSoon(50 * time.Millisecond); err != nil {
		return err
	}
	pause(200 * time.Millisecond)
	missing, tooMany, err := c.difference(namespace, left)
	if err != nil {
		return err
	}
	c.report.check(len(missing) == 0 && len(tooMany) == 0, "R-667", "%s: changed afterwards: missing %v, too many %v", namespace, missing, tooMany)
	if err := c.client.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := c.killSoon(20 * time.Millisecond); err != nil {
		return err
	}
	if err := c.awaitNamespaceGone(namespace); err != nil {
		return err
	}
	missing, tooMany, err = c.difference(namespace, nil)
	if err == nil {
		c.report.check(len(missing)+len(tooMany) == 0, "R-667", "%s: survived their namespace: %v", namespace, tooMany)
	}
	return err
}
