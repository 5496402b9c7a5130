package e2e_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"eventsv2/test/testenv"
)

// cloudSQL has all that a connector uses: a metadata server, the Admin API, and the server of an instance, before a real
// Postgres. It lets in who has a certificate of the Admin API: a certificate with a login token as its service account,
// and one without after the password.
type cloudSQL struct {
	t           *testing.T
	databaseURL string // of the Postgres behind it
	api         *httptest.Server
	metadata    *httptest.Server
	address     string // of the instance, without its port
	authority   *x509.Certificate
	key         *rsa.PrivateKey
	server      tls.Certificate
	serial      int64 // guarded by mu

	mu     sync.Mutex
	logins []string // as user by token or password
}

const (
	cloudInstance = "e2e:somewhere-1:queue"
	iamUser       = "worker@e2e.iam"
	loginToken    = "canary-login-token"
	apiToken      = "canary-api-token"
	ownerPassword = "canary-owner-password"
)

func newCloudSQL(t *testing.T, databaseURL string) *cloudSQL {
	t.Helper()
	c := &cloudSQL{t: t, databaseURL: databaseURL}
	var err error
	if c.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	c.authority = c.parsed(x509.CreateCertificate(rand.Reader, root, root, &c.key.PublicKey, c.key))
	own := c.sign("e2e:queue", &c.key.PublicKey)
	c.server = tls.Certificate{Certificate: [][]byte{own.Raw}, PrivateKey: c.key}
	c.listen() // before anybody asks the API for its address
	c.api = httptest.NewServer(http.HandlerFunc(c.adminAPI))
	t.Cleanup(c.api.Close)
	c.metadata = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		switch {
		case strings.HasSuffix(r.URL.Path, "/token") && strings.HasSuffix(r.URL.Query().Get("scopes"), "sqlservice.login"):
			_, _ = fmt.Fprintf(w, `{"access_token":%q,"expires_in":3599,"token_type":"Bearer"}`, loginToken)
		case strings.HasSuffix(r.URL.Path, "/token"):
			_, _ = fmt.Fprintf(w, `{"access_token":%q,"expires_in":3599,"token_type":"Bearer"}`, apiToken)
		case strings.HasSuffix(r.URL.Path, "/universe-domain"), strings.HasSuffix(r.URL.Path, "/universe_domain"):
			_, _ = io.WriteString(w, "googleapis.com")
		default:
			_, _ = io.WriteString(w, "e2e")
		}
	}))
	t.Cleanup(c.metadata.Close)
	return c
}

// listen serves the instance on the port of all instances, at an address of its own on this machine.
func (c *cloudSQL) listen() {
	random := make([]byte, 3)
	if _, err := rand.Read(random); err != nil {
		c.t.Fatal(err)
	}
	c.address = fmt.Sprintf("127.%d.%d.%d", random[0], random[1], 1+random[2]%250)
	listener, err := net.Listen("tcp", c.address+":3307")
	if err != nil {
		c.t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(c.authority)
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{c.server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients})
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				defer stop()
				defer conn.Close()
				if err := c.serve(ctx, secure); err != nil && ctx.Err() == nil {
					c.t.Logf("the instance ends a connection: %v", err)
				}
			})
		}
	})
}

func (c *cloudSQL) parsed(der []byte, err error) *x509.Certificate {
	if err == nil {
		var cert *x509.Certificate
		if cert, err = x509.ParseCertificate(der); err == nil {
			return cert
		}
	}
	c.t.Error(err)
	return &x509.Certificate{}
}

// sign makes a certificate of the authority.
func (c *cloudSQL) sign(name string, key any) *x509.Certificate {
	c.mu.Lock()
	c.serial++
	serial := c.serial + 1
	c.mu.Unlock()
	return c.parsed(x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, c.authority, key, c.key))
}

func pemOf(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// adminAPI says where the instance is, and makes the certificates of its clients.
func (c *cloudSQL) adminAPI(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+apiToken:
		w.WriteHeader(http.StatusUnauthorized)
	case strings.Contains(r.URL.Path, "/instances/forbidden"):
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":{"code":403,"message":"The client is not authorized to make this request."}}`)
	case strings.Contains(r.URL.Path, "/instances/busy"):
		w.WriteHeader(http.StatusTooManyRequests)
	case r.URL.Path == "/sql/v1beta4/projects/e2e/instances/queue/connectSettings":
		_ = json.NewEncoder(w).Encode(map[string]any{"region": "somewhere-1", "databaseVersion": "POSTGRES_17", "backendType": "SECOND_GEN",
			"ipAddresses": []any{map[string]any{"type": "PRIVATE", "ipAddress": c.address}}, "serverCaCert": map[string]any{"cert": pemOf(c.authority)}})
	case r.URL.Path == "/sql/v1beta4/projects/e2e/instances/queue:generateEphemeralCert":
		var asked struct {
			Key   string `json:"public_key"`
			Token string `json:"access_token"`
		}
		err := json.NewDecoder(r.Body).Decode(&asked)
		block, _ := pem.Decode([]byte(asked.Key))
		if err != nil || block == nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ephemeralCert": map[string]any{"cert": pemOf(c.sign("token:"+asked.Token, key))}})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// serve is one connection: its login, and then Postgres.
func (c *cloudSQL) serve(ctx context.Context, conn *tls.Conn) error {
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("the certificates: %w", err)
	}
	client := pgproto3.NewBackend(conn, conn)
	first, err := client.ReceiveStartupMessage()
	if err != nil {
		return err
	}
	if _, is := first.(*pgproto3.CancelRequest); is {
		return nil // of a program that has given up: its statement ends by itself
	}
	startup, is := first.(*pgproto3.StartupMessage)
	if !is {
		return fmt.Errorf("a connection that is encrypted already begins with %T", first)
	}
	user, how := startup.Parameters["user"], "token"
	if conn.ConnectionState().PeerCertificates[0].Subject.CommonName != "token:"+loginToken || user != iamUser {
		how = "password"
		client.Send(&pgproto3.AuthenticationCleartextPassword{})
		if err := client.Flush(); err != nil {
			return err
		}
		if err := client.SetAuthType(pgproto3.AuthTypeCleartextPassword); err != nil {
			return err
		}
		answer, err := client.Receive()
		if err != nil {
			return err
		}
		if password, is := answer.(*pgproto3.PasswordMessage); !is || password.Password != ownerPassword {
			client.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "password authentication failed"})
			return client.Flush()
		}
	}
	c.mu.Lock()
	c.logins = append(c.logins, user+" by "+how)
	c.mu.Unlock()
	config, err := pgconn.ParseConfig(c.databaseURL)
	if err != nil {
		return err
	}
	for name, value := range startup.Parameters {
		if name != "user" && name != "database" {
			config.RuntimeParams[name] = value
		}
	}
	upstream, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	// Where a write took long, the connection reads in the background, and would take the first answer for itself.
	if err := upstream.SyncConn(ctx); err != nil {
		return err
	}
	server, err := upstream.Hijack()
	if err != nil {
		return err
	}
	defer server.Conn.Close()
	client.Send(&pgproto3.AuthenticationOk{})
	for name, value := range server.ParameterStatuses {
		client.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	client.Send(&pgproto3.BackendKeyData{ProcessID: server.PID, SecretKey: server.SecretKey})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: server.TxStatus})
	if err := client.Flush(); err != nil {
		return err
	}
	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = io.Copy(server.Conn, conn)
		_ = server.Conn.Close()
	})
	_, _ = io.Copy(conn, server.Conn)
	_ = conn.Close()
	copying.Wait()
	return nil
}

// environment configures a program to connect to an instance.
func (c *cloudSQL) environment(instance, user string) map[string]string {
	return map[string]string{"CLOUDSQL_INSTANCE": instance, "CLOUDSQL_IP_TYPE": "private", "CLOUDSQL_ADMIN_API_ENDPOINT": c.api.URL,
		"GCE_METADATA_HOST": strings.TrimPrefix(c.metadata.URL, "http://"), "DATABASE_URL": "user='" + user + "' dbname=events"}
}

// TestCloudSQLWorksWithoutAProxy: the programs as deployed find the instance by the Admin API, encrypt with its certificates, and log
// in as their service account, or with the password that a file has. Google's own servers were not asked.
func TestCloudSQLWorksWithoutAProxy(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	c := newCloudSQL(t, r.environment["DATABASE_URL"])
	as := c.environment(cloudInstance, iamUser)
	as["RETAIN_HISTORY"] = "true"
	programs := []*program{r.start("worker", as), r.start("cron", as)}
	for _, p := range programs {
		p.await(p.Name + " started")
		p.awaitReady()
	}
	r.emit(event("greet", `1`))
	r.target.await(t, 1)
	r.awaitSQL("it has ended", `SELECT count(*) = 1 FROM event_log`)

	closed := one[int](r, `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name LIKE ANY (ARRAY['eventsv2-worker%', 'eventsv2-cron%'])`)
	if closed < 4 {
		t.Errorf("%d connections were closed, want those of two programs", closed)
	}
	r.emit(event("greet", `2`))
	r.awaitSQL("it has ended after its server closed all connections", `SELECT count(*) = 2 FROM event_log`)

	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte(ownerPassword), 0o600); err != nil {
		t.Fatal(err)
	}
	owner := c.environment(cloudInstance, "events_owner")
	owner["DATABASE_PASSWORD_FILE"] = secret
	for _, words := range [][]string{{"migrate", "status"}, {"stats"}, {"emit", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet", "--value", "3"}} {
		testenv.Eventually(t, "eventctl connects on a machine that may be busy", func() bool {
			cmd := r.command("eventctl", words...)
			cmd.Env = r.env(owner)
			out, err := cmd.CombinedOutput()
			if err != nil && !strings.Contains(string(out), "deadline exceeded") {
				t.Fatalf("eventctl %v: %v\n%s", words, err, out)
			}
			return err == nil
		})
	}
	r.awaitSQL("what eventctl emitted has ended", `SELECT count(*) = 3 FROM event_log`)

	refused := r.start("worker", c.environment("e2e:somewhere-1:forbidden", iamUser))
	if status := refused.wait(); status == 0 || !strings.Contains(refused.text(), "The client is not authorized to make this request") {
		t.Errorf("a worker that may not connect ended with %d", status)
	}
	waiting := r.start("worker", c.environment("e2e:somewhere-1:busy", iamUser))
	waiting.await("the database cannot be used yet")
	for _, p := range append(programs, waiting) {
		if status := p.terminate(); status != 0 {
			t.Errorf("%s ended with %d", p.Name, status)
		}
		if strings.Contains(p.text(), "canary") {
			t.Errorf("the log of %s has a token", p.Name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	got := map[string]bool{}
	for _, login := range c.logins {
		got[login] = true
	}
	if !got[iamUser+" by token"] || !got["events_owner by password"] || len(got) != 2 {
		t.Errorf("the logins were %v", got)
	}
}
