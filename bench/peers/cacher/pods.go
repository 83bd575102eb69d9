package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// makePod is the pod of bench/pods.c with that number: JSON of exactly size bytes, values of its own.
func makePod(number, size int, random *rand.Rand) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-7d4b9c6f5-%07d", number), Namespace: fmt.Sprintf("ns-%05d", number/100),
			UID:         types.UID(fmt.Sprintf("%016x-%012x", random.Uint64(), number)),
			Labels:      map[string]string{"app": fmt.Sprintf("app-%05d", number%100), "pod-template-hash": "7d4b9c6f5", "shard": fmt.Sprintf("s%02d", number%100)},
			Annotations: map[string]string{"checksum/config": ""},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d4b9c6f5", Controller: &yes,
				UID: types.UID(fmt.Sprintf("%016x-%04x", random.Uint64(), random.Intn(1<<16)))}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:v2.1.4"}}, RestartPolicy: corev1.RestartPolicyAlways,
			NodeName: fmt.Sprintf("node-%05d", number%1000)},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			PodIP: fmt.Sprintf("10.%d.%d.%d", random.Intn(256), random.Intn(256), random.Intn(256))},
	}
	if size < 900 { // only what selectors need
		pod = &corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: map[string]string{"app": pod.Labels["app"]},
			Annotations: map[string]string{"checksum/config": ""}}, Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	text, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	var filler strings.Builder
	for filler.Len() < size-len(text) {
		filler.WriteByte(letters[random.Intn(len(letters))])
	}
	pod.Annotations["checksum/config"] = filler.String()
	return pod
}
