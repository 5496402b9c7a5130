//go:build nodocker

package services

import (
	"context"
	"errors"
)

var errNoDocker = errors.New("this binary was built with the tag nodocker: run it with test/withservices, or build it without")

func dockerAnswers(context.Context) error { return errNoDocker }

func postgresFromImage(context.Context, *settings) (*Service, error) { return nil, errNoDocker }

func emulatorFromImage(context.Context, *settings) (*Service, error) { return nil, errNoDocker }
