//! Declares routes together with their description, so that every handler is in both.

/// Declares `router` and `Description` for a part of the interface.
macro_rules! routes {
    (
        $($path:literal => $($method:ident $($handler:ident)::+),+;)+
        $(describe($($described:tt)+))?
    ) => {
        /// The routes of this part.
        pub(in crate::http) fn router() -> axum::Router<std::sync::Arc<$crate::app::App>> {
            use axum::routing::MethodRouter;
            axum::Router::new()$(.route($path, MethodRouter::new()$(.$method($($handler)::+))+))+
        }

        /// The description of this part.
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($($($handler)::+),+),+), $($($described)+)?)]
        pub(in crate::http) struct Description;
    };
}
pub(super) use routes;
