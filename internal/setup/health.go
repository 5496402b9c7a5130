package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTakes bounds the request of a health command. An answer of /readyz takes three seconds at most.
const healthTakes = 5 * time.Second

// HealthCommand is the command health of a program: it asks a copy that runs on the same machine whether it is well.
// It is for the health checks of containers, whose image has no other program that could ask.
func HealthCommand(environment map[string]string) *cobra.Command {
	health := &cobra.Command{
		Use:   "health",
		Short: "Ask the program that runs on this machine, on PORT, whether it is well",
		Long: "health requests /healthz of the program that runs on this machine, on PORT, and ends with status 0 if\n" +
			"it is well. With --ready it requests /readyz, which also says whether the program can do its work. It is\n" +
			"for the health checks of containers.",
		Example: "  health --ready",
		Args:    cobra.NoArgs,
	}
	ready := health.Flags().Bool("ready", false, "ask whether it can do its work, rather than whether it has to be restarted")
	health.RunE = func(cmd *cobra.Command, _ []string) error {
		address, err := ListenAddress(cmp.Or(environment["PORT"], "8080"))
		if err != nil {
			return err
		}
		path := "/healthz"
		if *ready {
			path = "/readyz"
		}
		return askHealth(cmd.Context(), cmd.OutOrStdout(), "http://"+reachable(address)+path)
	}
	return health
}

// reachable is an address at which a program on this machine is reached that listens on address.
func reachable(address string) string {
	host, port, _ := net.SplitHostPort(address) // it has been checked
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func askHealth(ctx context.Context, out io.Writer, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTakes)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("PORT: %w", err)
	}
	// Not through a proxy that HTTP_PROXY names.
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return fmt.Errorf("the program does not answer: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return fmt.Errorf("the program breaks its answer off: %w", err)
	}
	said := strings.TrimSpace(string(text))
	if response.StatusCode != http.StatusOK {
		return errors.New(said)
	}
	_, err = fmt.Fprintln(out, said)
	return err
}
