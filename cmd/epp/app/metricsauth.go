package app

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationapi "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/weir-epp/weir/pkg/datastore/kube"
)

// The lifetimes of the apiserver's cached answers: about a token's owner (or an unknown token), a permitted reader, a
// forbidden one. Two requests end before a scrape's usual timeout of 10 s.
const (
	tokenHolds   = time.Minute
	allowedHolds = 5 * time.Minute
	deniedHolds  = 30 * time.Second
	askTimeout   = 4 * time.Second
)

// readers asks the apiserver for the permitted readers of the metrics.
type readers struct {
	tokens      authenticator.Token
	permissions authorizer.Authorizer
	log         logr.Logger
}

// authorized returns the handler with authentication: the apiserver must know the token (TokenReview), and its owner
// must be permitted to get the path by the rules for non-resource URLs (SubjectAccessReview). Without a token, or with
// an unknown one, the status is 401; without the permission 403; if the apiserver cannot be reached 503.
func authorized(o *Options, handler http.Handler, log logr.Logger) (http.Handler, error) {
	r, err := newReaders(o.Kubeconfig, log)
	if err != nil {
		return nil, fmt.Errorf("--metrics-endpoint-auth: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if status, why := r.refuse(request); status != http.StatusOK {
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, why, status)
			return
		}
		handler.ServeHTTP(w, request)
	}), nil
}

func newReaders(kubeconfig string, log logr.Logger) (*readers, error) {
	connection, err := kube.Connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	connection.Timeout = askTimeout
	authentication, err := authenticationv1.NewForConfig(connection)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationv1.NewForConfig(connection)
	if err != nil {
		return nil, err
	}
	permissions, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: authorization, AllowCacheTTL: allowedHolds, DenyCacheTTL: deniedHolds,
		WebhookRetryBackoff: &wait.Backoff{Steps: 1}, // the scraper retries
	}.New()
	if err != nil {
		return nil, err
	}
	tokens := cache.New(tokenReviews{authentication.TokenReviews()}, false, tokenHolds, tokenHolds)
	return &readers{tokens: tokens, permissions: permissions, log: log}, nil
}

// refuse returns 200, or the status and the reason of a refused request.
func (r *readers) refuse(request *http.Request) (status int, why string) {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, "a bearer token is needed"
	}
	reader, known, err := r.tokens.AuthenticateToken(request.Context(), token)
	if err != nil {
		r.log.Error(err, "cannot ask the apiserver who reads the metrics")
		return http.StatusServiceUnavailable, "the apiserver cannot be asked about the token"
	}
	if !known {
		return http.StatusUnauthorized, "the apiserver does not know the token"
	}
	decision, _, err := r.permissions.Authorize(request.Context(), authorizer.AttributesRecord{
		User: reader.User, Verb: strings.ToLower(request.Method), Path: request.URL.Path,
	})
	if err != nil {
		r.log.Error(err, "cannot ask the apiserver for the permission to read the metrics", "user", reader.User.GetName())
		return http.StatusServiceUnavailable, "the apiserver cannot be asked for the permission"
	}
	if decision != authorizer.DecisionAllow {
		return http.StatusForbidden, fmt.Sprintf("%s may not %s %s", reader.User.GetName(), strings.ToLower(request.Method), request.URL.Path)
	}
	return http.StatusOK, ""
}

// tokenReviews asks the apiserver for a token's owner. The library's own authenticator also returns an error for an
// unknown token, which could not be distinguished from an outage.
type tokenReviews struct {
	client authenticationv1.TokenReviewInterface
}

// AuthenticateToken implements authenticator.Token. An error means that the apiserver could not be reached.
func (t tokenReviews) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	question := &authenticationapi.TokenReview{Spec: authenticationapi.TokenReviewSpec{Token: token}}
	answer, err := t.client.Create(ctx, question, metav1.CreateOptions{})
	if err != nil {
		return nil, false, err
	}
	if !answer.Status.Authenticated {
		return nil, false, nil
	}
	u := answer.Status.User
	extra := map[string][]string{}
	for key, values := range u.Extra {
		extra[key] = values
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: extra}}, true, nil
}
