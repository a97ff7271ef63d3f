//! Lists that servers return page by page.

use super::connection::ConnectionHandle;
use super::error::MAX_MESSAGE_CHARS;
use patter_core::text::truncate;
use rmcp::ServiceError;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool as ListedTool};
use serde_json::Value as Json;

/// The number of tools, resources or prompts that are used of a server.
pub(super) const MAX_ITEMS: usize = 1000;
/// The number of pages that are read of a list.
const MAX_PAGES: usize = 100;

/// The tools as a server describes them.
#[derive(Default)]
pub(super) struct ToolList {
    pub(super) tools: Vec<ListedTool>,
    /// The descriptions that are not those of a tool: the name, as far as it is known, and the error.
    pub(super) malformed: Vec<(String, String)>,
    /// Whether there are more tools than are used.
    pub(super) is_truncated: bool,
    /// Whether the server has resources.
    pub(super) has_resources: bool,
    /// Whether the server has prompts.
    pub(super) has_prompts: bool,
}

/// Lists the tools. A malformed description does not affect the other tools.
pub(super) async fn list_tools(connection: &ConnectionHandle) -> Result<ToolList, ServiceError> {
    let mut list = ToolList::default();
    if let Some(info) = connection.peer.peer_info() {
        list.has_resources = info.capabilities.resources.is_some();
        list.has_prompts = info.capabilities.prompts.is_some();
        // Such a server may not know the request.
        if info.capabilities.tools.is_none() && (list.has_resources || list.has_prompts) {
            return Ok(list);
        }
    }
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        cursor = match connection.peer.send_request(ClientRequest::ListToolsRequest(request)).await? {
            ServerResult::ListToolsResult(page) => {
                list.tools.extend(page.tools);
                page.next_cursor
            }
            // The library reads a page as a whole, or not at all.
            ServerResult::CustomResult(page) => list.add_page(&page.0)?,
            _ => return Err(ServiceError::UnexpectedResponse),
        };
        if list.tools.len() + list.malformed.len() > MAX_ITEMS {
            list.tools.truncate(MAX_ITEMS);
            list.malformed.truncate(MAX_ITEMS - list.tools.len());
            list.is_truncated = true;
            return Ok(list);
        }
        if cursor.is_none() {
            return Ok(list);
        }
    }
    list.is_truncated = true;
    Ok(list)
}

impl ToolList {
    /// Adds the tools of a page one by one, and returns the cursor of the next page.
    fn add_page(&mut self, page: &Json) -> Result<Option<String>, ServiceError> {
        let tools = page.get("tools").and_then(Json::as_array).ok_or(ServiceError::UnexpectedResponse)?;
        for (index, tool) in tools.iter().enumerate() {
            match serde_json::from_value(tool.clone()) {
                Ok(tool) => self.tools.push(tool),
                Err(error) => {
                    let name = tool.get("name").and_then(Json::as_str);
                    let name = name.map_or_else(|| format!("#{}", index + 1), |name| truncate(name, MAX_MESSAGE_CHARS));
                    self.malformed.push((name, truncate(&error.to_string(), MAX_MESSAGE_CHARS)));
                }
            }
        }
        Ok(page.get("nextCursor").and_then(Json::as_str).map(str::to_owned))
    }
}
