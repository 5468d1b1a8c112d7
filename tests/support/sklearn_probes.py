"""Estimators, metrics and helpers of scikit-learn that work on arrays of the standard, as functions of a converter.

``PROBES[name](a)`` runs one of them on ``a(host array)``; with ``a = np.asarray`` it is scikit-learn on NumPy's arrays.
"""

from typing import Any

import numpy as np
from sklearn import (
    decomposition,
    discriminant_analysis,
    kernel_approximation,
    linear_model,
    metrics,
    mixture,
    model_selection,
    naive_bayes,
    pipeline,
    preprocessing,
    utils,
)

from scipy_probes import Convert, Probe, each

_rng = np.random.default_rng(7)
X = _rng.normal(size=(40, 5))
Y = X @ np.arange(1.0, 6.0) + 0.1 * _rng.normal(size=40)
LABELS = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(np.int64)
GUESS = np.where(_rng.random(40) < 0.8, LABELS, 1 - LABELS)
CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])
CLASSES_GUESS = np.where(_rng.random(40) < 0.8, CLASSES, 0)
CHANCE = np.clip(0.5 + 0.3 * X[:, 0], 0.05, 0.95)
SCORES = np.stack([1 - CHANCE, CHANCE], axis=1)
POSITIVE = np.abs(Y) + 0.1
POSITIVE_GUESS = POSITIVE * np.exp(0.1 * _rng.normal(size=40))
MULTI = (X[:, :3] > 0).astype(np.int64)
MULTI_GUESS = (X[:, :3] + 0.3 * _rng.normal(size=(40, 3)) > 0).astype(np.int64)
WEIGHTS = _rng.random(40) + 0.1

CLASSIFICATION = (
    "accuracy_score balanced_accuracy_score cohen_kappa_score confusion_matrix class_likelihood_ratios f1_score "
    "hamming_loss jaccard_score matthews_corrcoef precision_recall_fscore_support "
    "precision_score recall_score zero_one_loss"
)
REGRESSION = (
    "d2_absolute_error_score d2_pinball_score d2_tweedie_score explained_variance_score max_error mean_absolute_error "
    "mean_absolute_percentage_error mean_gamma_deviance mean_pinball_loss mean_poisson_deviance mean_squared_error "
    "mean_squared_log_error mean_tweedie_deviance median_absolute_error r2_score root_mean_squared_error "
    "root_mean_squared_log_error"
)
PAIRWISE = (
    "additive_chi2_kernel chi2_kernel cosine_distances cosine_similarity euclidean_distances laplacian_kernel "
    "linear_kernel manhattan_distances paired_cosine_distances polynomial_kernel "
    "rbf_kernel sigmoid_kernel"
)
SCORED = (
    "brier_score_loss d2_brier_score det_curve roc_curve precision_recall_curve average_precision_score "
    "roc_auc_score log_loss"
)


def _metrics() -> dict[str, Probe]:
    table: dict[str, Probe] = {}
    table |= each(metrics, CLASSIFICATION, lambda f, a: f(a(LABELS), a(GUESS)))
    table |= each(metrics, REGRESSION, lambda f, a: f(a(POSITIVE), a(POSITIVE_GUESS)))
    table |= each(metrics.pairwise, PAIRWISE, lambda f, a: f(a(np.abs(X)), a(np.abs(X[::-1].copy()))))
    table |= each(metrics, SCORED, lambda f, a: f(a(LABELS), a(CHANCE)))
    return table | {
        "accuracy of several labels": lambda a: metrics.accuracy_score(a(MULTI), a(MULTI_GUESS)),
        "f1 of several classes": lambda a: metrics.f1_score(a(CLASSES), a(CLASSES_GUESS), average="macro"),
        "multilabel_confusion_matrix": lambda a: metrics.multilabel_confusion_matrix(a(MULTI), a(MULTI_GUESS)),
        "fbeta_score": lambda a: metrics.fbeta_score(a(LABELS), a(GUESS), beta=0.5),
        "weighted mean_squared_error": lambda a: metrics.mean_squared_error(
            a(Y), a(Y[::-1].copy()), sample_weight=a(WEIGHTS)
        ),
        "d2_log_loss_score": lambda a: metrics.d2_log_loss_score(a(LABELS), a(SCORES)),
        "paired_euclidean_distances": lambda a: metrics.pairwise.paired_euclidean_distances(a(X), a(X[::-1].copy())),
        "pairwise_distances": lambda a: metrics.pairwise_distances(a(X), metric="euclidean"),
        "confusion_matrix of classes": lambda a: metrics.confusion_matrix(a(CLASSES), a(CLASSES_GUESS)),
        "mutual information": lambda a: metrics.cluster.entropy(a(CLASSES)),
        "ndcg": lambda a: metrics.r2_score(a(X), a(X + 0.1), multioutput="raw_values"),
    }


def _estimators() -> dict[str, Probe]:
    lm = linear_model

    def parts(model: Any, *asked: str) -> list[Any]:
        return [getattr(model, name) for name in asked]

    def scaled(kind: type, **how: Any) -> Probe:
        return lambda a: [
            (m := kind(**how).fit(a(X))).transform(a(X)),
            *([m.inverse_transform(a(X))] if hasattr(m, "scale_") else []),
        ]

    def pca(**how: Any) -> Probe:
        def run(a: Convert) -> Any:
            m = decomposition.PCA(3, **how).fit(a(X))
            return [m.explained_variance_, m.inverse_transform(m.transform(a(X))), m.get_covariance(), m.score(a(X))]

        return run

    return {
        "Ridge": lambda a: [
            (m := lm.Ridge(solver="svd").fit(a(X), a(Y))).coef_,
            m.intercept_,
            m.predict(a(X)),
            m.score(a(X), a(Y)),
        ],
        "RidgeCV": lambda a: [
            (m := lm.RidgeCV(alphas=a(np.asarray([0.1, 1.0, 10.0]))).fit(a(X), a(Y))).coef_,
            m.predict(a(X)),
        ],
        "RidgeClassifier": lambda a: lm.RidgeClassifier(solver="svd").fit(a(X), a(LABELS)).predict(a(X)),
        "RidgeClassifierCV": lambda a: lm.RidgeClassifierCV().fit(a(X), a(LABELS)).predict(a(X)),
        "LogisticRegression": lambda a: [
            (m := lm.LogisticRegression(solver="lbfgs").fit(a(X), a(CLASSES))).predict(a(X)),
            m.decision_function(a(X)) > 0,
        ],
        "PoissonRegressor": lambda a: lm.PoissonRegressor(solver="lbfgs").fit(a(X), a(POSITIVE)).predict(a(X)) > 0,
        "PCA": pca(svd_solver="full"),
        "PCA by covariance": pca(svd_solver="covariance_eigh"),
        "PCA, whitened": pca(svd_solver="full", whiten=True),
        "PCA, randomized": pca(svd_solver="randomized", random_state=0, power_iteration_normalizer="QR"),
        "GaussianMixture": lambda a: (
            mixture.GaussianMixture(2, random_state=0, init_params="random", tol=1e-9, max_iter=300)
            .fit(a(X))
            .predict_proba(a(X))
        ),
        "GaussianNB": lambda a: [
            (m := naive_bayes.GaussianNB().fit(a(X), a(LABELS))).predict_proba(a(X)),
            m.predict(a(X)),
        ],
        "LinearDiscriminantAnalysis": lambda a: [
            (m := discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(a(X), a(CLASSES))).predict(a(X)),
            m.predict_proba(a(X)),
            m.transform(a(X)) ** 2,
        ],
        "Nystroem": lambda a: kernel_approximation.Nystroem(n_components=8, random_state=0).fit_transform(a(X)),
        "StandardScaler": scaled(preprocessing.StandardScaler),
        "MinMaxScaler": scaled(preprocessing.MinMaxScaler),
        "MaxAbsScaler": scaled(preprocessing.MaxAbsScaler),
        "Normalizer": scaled(preprocessing.Normalizer),
        "Binarizer": scaled(preprocessing.Binarizer),
        "PolynomialFeatures": scaled(preprocessing.PolynomialFeatures, degree=3),
        "KernelCenterer": lambda a: preprocessing.KernelCenterer().fit_transform(a(X @ X.T)),
        "LabelEncoder": lambda a: [
            (m := preprocessing.LabelEncoder()).fit_transform(a(CLASSES + 3)),
            m.inverse_transform(a(CLASSES)),
            m.classes_,
        ],
        "LabelBinarizer": lambda a: preprocessing.LabelBinarizer().fit_transform(a(CLASSES)),
        "make_pipeline": lambda a: (
            pipeline.make_pipeline(
                preprocessing.StandardScaler(), decomposition.PCA(3, svd_solver="full"), lm.Ridge(solver="svd")
            )
            .fit(a(X), a(Y))
            .predict(a(X))
        ),
        "train_test_split": lambda a: model_selection.train_test_split(a(X), a(Y), random_state=0),
        "cross_val_predict": lambda a: model_selection.cross_val_predict(lm.Ridge(solver="svd"), a(X), a(Y)),
        "cross_val_score": lambda a: model_selection.cross_val_score(lm.Ridge(solver="svd"), a(X), a(Y)).tolist(),
        "GridSearchCV": lambda a: [
            (
                m := model_selection.GridSearchCV(lm.Ridge(solver="svd"), {"alpha": [0.1, 1.0]}).fit(a(X), a(Y))
            ).best_score_,
            m.predict(a(X)),
        ],
        "check_array": lambda a: utils.check_array(a(X)),
        "maxabs_scale": lambda a: preprocessing.maxabs_scale(a(X)),
    }


PROBES: dict[str, Probe] = {
    f"{part}: {name}": probe
    for part, table in {"metrics": _metrics(), "estimators": _estimators()}.items()
    for name, probe in table.items()
}
