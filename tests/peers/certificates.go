package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// testCertificates are made for one run: a certificate authority, and one certificate for 127.0.0.1 that serves both as a server's
// and as a client's (common name "root").
type testCertificates struct {
	caFile, certFile, keyFile string
	client                    *tls.Config
	server                    *tls.Config
	dir                       string
	ca                        *x509.Certificate
	caKey                     *ecdsa.PrivateKey
}

// issue makes another certificate of the same authority, for clients and for 127.0.0.1, and writes it beside the others.
func (c *testCertificates) issue(name string, subject pkix.Name, serial int64) (certFile, keyFile string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: subject, NotBefore: c.ca.NotBefore, NotAfter: c.ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"localhost"}}
	leafBytes, err := x509.CreateCertificate(rand.Reader, leaf, c.ca, &key.PublicKey, c.caKey)
	if err != nil {
		return "", "", err
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", "", err
	}
	certFile, keyFile = filepath.Join(c.dir, name+".pem"), filepath.Join(c.dir, name+".key")
	if err := writePEM(certFile, "CERTIFICATE", leafBytes); err != nil {
		return "", "", err
	}
	return certFile, keyFile, writePEM(keyFile, "PRIVATE KEY", keyBytes)
}

func writePEM(path, kind string, bytes []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600)
}

func makeTestCertificates(dir string) (*testCertificates, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	from, to := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "vedette test authority"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	caBytes, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	c := &testCertificates{caFile: filepath.Join(dir, "ca.pem"), dir: dir, ca: ca, caKey: caKey}
	if err := writePEM(c.caFile, "CERTIFICATE", caBytes); err != nil {
		return nil, err
	}
	if c.certFile, c.keyFile, err = c.issue("cert", pkix.Name{CommonName: "root"}, 2); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return nil, err
	}
	if c.ca, err = x509.ParseCertificate(caBytes); err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.ca)
	c.client = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	c.server = &tls.Config{ClientCAs: pool, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	return c, nil
}
