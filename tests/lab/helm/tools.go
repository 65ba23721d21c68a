//go:build tools

// Names the programs that tests/shell/programs.sh builds, so that go.mod and go.sum hold all that they are made of.
package tools

import (
	_ "helm.sh/helm/v4/cmd/helm"
)
