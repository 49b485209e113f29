//! The bare server: this program, started again, with the same library and one tool that echoes its input.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService, stdio, stdio_pipes};
use rmcp::{ErrorData, RoleServer, ServerHandler, serve_server};
use tokio::net::TcpListener;

/// Makes this program the server, on the library's usual stdio.
pub(super) const STDIO: &str = "--echo-stdio";
/// The same, on the library's stdio for pipes.
pub(super) const PIPES: &str = "--echo-pipes";
/// The same over HTTP; it prints its address.
const HTTP: &str = "--echo-http";

/// Runs the server, if this program was started as one.
pub(crate) fn echo_if_asked() -> Option<Result<()>> {
    let asked = std::env::args().nth(1)?;
    let serve = async {
        match asked.as_str() {
            STDIO => serve_server(Echo, stdio()).await?.waiting().await.map(drop)?,
            PIPES => serve_server(Echo, stdio_pipes())
                .await?
                .waiting()
                .await
                .map(drop)?,
            _ => over_http().await?,
        }
        Ok(())
    };
    if ![STDIO, PIPES, HTTP].contains(&asked.as_str()) {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    Some(
        runtime
            .map_err(Into::into)
            .and_then(|runtime| runtime.block_on(serve)),
    )
}

pub(super) fn listening(program: &Path) -> Result<(Running, String)> {
    let mut child = Command::new(program)
        .arg(HTTP)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().context("no standard output")?;
    let running = Running(child);
    let mut address = String::new();
    BufReader::new(stdout).read_line(&mut address)?;
    Ok((running, address.trim().to_owned()))
}

pub(super) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

async fn over_http() -> Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("{}", listener.local_addr()?);
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service = StreamableHttpService::new(|| Ok(Echo), Arc::new(LocalSessionManager::default()), config);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments
            .get("text")
            .and_then(|text| text.as_str())
            .unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
