//go:build !nodocker

package services

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

const (
	postgresImageVariable = "POSTGRES_IMAGE"
	postgresImage         = "postgres:17.6"
	postgresPort          = "5432/tcp"

	emulatorImageVariable = "PUBSUB_EMULATOR_IMAGE"
	emulatorImage         = "gcr.io/google.com/cloudsdktool/google-cloud-cli:577.0.0-emulators"
	emulatorPort          = "8085/tcp"

	// dockerLimit is how long a daemon may take to say that it is there, hostLimit
	// how long a container may take for one answer, and containerLimit how long
	// it may take to start when its image is there.
	dockerLimit    = 5 * time.Second
	hostLimit      = 3 * time.Second
	containerLimit = 2 * time.Minute
)

// dockerAnswers returns nil when a Docker daemon can be used. The library looks
// for one without any limit of time, so the one way in which that could hang, a
// remote host that is silent, is tried first.
func dockerAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dockerLimit)
	defer cancel()
	if u, err := url.Parse(os.Getenv("DOCKER_HOST")); err == nil && u.Scheme == "tcp" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
		if err != nil {
			return err
		}
		if err := conn.Close(); err != nil {
			return err
		}
	}
	provider, err := testcontainers.NewDockerProvider(quietly())
	if err != nil {
		return err
	}
	return provider.Health(ctx) // closes the provider, too
}

func quietly() testcontainers.LoggerOption { return testcontainers.WithLogger(log.NewNoopLogger()) }

// imageName returns the image that the environment names, or the usual one.
func imageName(s *settings, variable, usual string) string {
	if name := s.getenv(variable); name != "" {
		return name
	}
	return usual
}

func postgresFromImage(ctx context.Context, s *settings) (*Service, error) {
	image := imageName(s, postgresImageVariable, postgresImage)
	password := rand.Text()
	command := []string{"postgres", "-c", "shared_preload_libraries=pg_stat_statements", "-c", statementsKept}
	for _, setting := range s.serverSettings() {
		command = append(command, "-c", setting[0]+"="+setting[1])
	}
	c, err := runContainer(ctx, image, postgresPort,
		testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": password, "POSTGRES_USER": superuser}),
		testcontainers.WithCmd(command...))
	if err != nil {
		return nil, err
	}
	// The image listens on TCP only once its first start, which makes the
	// cluster, is over.
	address := func(host string) string { return postgresURL(host, c.port, password) }
	return c.service(ctx, address, pingPostgres)
}

func emulatorFromImage(ctx context.Context, s *settings) (*Service, error) {
	image := imageName(s, emulatorImageVariable, emulatorImage)
	c, err := runContainer(ctx, image, emulatorPort,
		testcontainers.WithCmd("gcloud", "beta", "emulators", "pubsub", "start", "--host-port=0.0.0.0:8085"))
	if err != nil {
		return nil, err
	}
	address := func(host string) string { return net.JoinHostPort(host, strconv.Itoa(c.port)) }
	return c.service(ctx, address, pingEmulator)
}

// runningContainer is a container and the address of its one port.
type runningContainer struct {
	testcontainers.Container
	image string
	hosts []string // where it may be reached
	port  int
}

// runContainer starts a container and publishes one of its ports on the
// loopback interface, or on all of a Docker host that is another machine.
func runContainer(ctx context.Context, image, port string, options ...testcontainers.ContainerCustomizer) (*runningContainer, error) {
	provider, err := testcontainers.NewDockerProvider(quietly())
	if err != nil {
		return nil, err
	}
	defer provider.Close() // it only drops idle connections
	if err := ensureImage(ctx, provider.Client(), image); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, containerLimit)
	defer cancel()
	options = append(options, quietly(), testcontainers.WithExposedPorts(port))
	if host, err := provider.DaemonHost(ctx); err == nil && host == "localhost" {
		options = append(options, testcontainers.WithHostConfigModifier(onLoopback(port)))
	}
	ctr, err := testcontainers.Run(ctx, image, options...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run the image %s: %w", image, err), terminate(context.WithoutCancel(ctx), ctr))
	}
	c := &runningContainer{Container: ctr, image: image}
	if err := c.locate(ctx, port); err != nil {
		return nil, errors.Join(err, terminate(context.WithoutCancel(ctx), ctr))
	}
	return c, nil
}

func onLoopback(port string) func(*container.HostConfig) {
	return func(config *container.HostConfig) {
		config.PortBindings = network.PortMap{
			network.MustParsePort(port): {{HostIP: netip.MustParseAddr(loopback)}},
		}
	}
}

// locate finds out where the port of the container can be reached.
func (c *runningContainer) locate(ctx context.Context, port string) error {
	host, err := c.Host(ctx)
	if err != nil {
		return fmt.Errorf("find the host of the container of %s: %w", c.image, err)
	}
	mapped, err := c.MappedPort(ctx, port)
	if err != nil {
		return fmt.Errorf("find the port of the container of %s: %w", c.image, err)
	}
	c.port = int(mapped.Num())
	c.hosts = []string{loopback} // localhost may be ::1, where nothing is bound
	if host != "localhost" {
		// Inside a container the library takes the Docker host to be the gateway.
		// That is wrong where the daemon runs in the same container.
		c.hosts = append([]string{host}, c.hosts...)
	}
	return nil
}

// service waits until the container answers on one of its hosts.
func (c *runningContainer) service(ctx context.Context, address func(host string) string, ping func(ctx context.Context, address string) error) (*Service, error) {
	limited, cancel := context.WithTimeout(ctx, containerLimit)
	defer cancel()
	var answering string
	err := poll(limited, nil, func(ctx context.Context) error {
		var errs []error
		for _, host := range c.hosts {
			answering = address(host)
			err := pingWithin(ctx, hostLimit, ping, answering)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the container of %s: %w", c.image, err), terminate(context.WithoutCancel(ctx), c.Container))
	}
	return &Service{
		URL:    answering,
		Origin: "docker image " + c.image,
		stop:   func(ctx context.Context) error { return terminate(ctx, c.Container) },
	}, nil
}

// pingWithin keeps a host that is silent from taking the time of the next one.
func pingWithin(ctx context.Context, limit time.Duration, ping func(context.Context, string) error, address string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return ping(ctx, address)
}

func terminate(ctx context.Context, ctr testcontainers.Container) error {
	return testcontainers.TerminateContainer(ctr, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
}

// ensureImage pulls an image that the daemon does not have. The library would do
// so, too, but it repeats a pull that failed for a quarter of an hour, which is
// long for a machine without a network.
func ensureImage(ctx context.Context, docker client.APIClient, image string) error {
	if _, err := docker.ImageInspect(ctx, image); err == nil {
		return nil
	}
	var options client.ImagePullOptions
	if _, auth, err := testcontainers.DockerImageAuth(ctx, image); err == nil {
		// Without credentials the registry decides, and its error is clear.
		options.RegistryAuth, _ = authconfig.Encode(auth)
	}
	pull, err := docker.ImagePull(ctx, image, options)
	if err == nil {
		err = pull.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("image %s %w: Docker has not got it and cannot pull it: %w", image, ErrNotFound, err)
	}
	return nil
}
